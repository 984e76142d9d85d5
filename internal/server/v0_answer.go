package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// httpError is an answer of v0 other than success.
type httpError struct {
	code int
	text string // the answer's Status.error
}

// Error is the text of the answer.
func (e *httpError) Error() string { return e.text }

var (
	// errDatabaseUnavailable replaces the 500 of Threeport's API, which quotes the database's driver and looks permanent.
	errDatabaseUnavailable = &httpError{http.StatusServiceUnavailable, "the database does not answer, or cannot write: send it again"}

	// errBusy is the answer to a request that a limiter without an answer of its own refuses.
	errBusy = &httpError{http.StatusServiceUnavailable, "too many large requests at once: send it again"}

	// errLongLists is the answer to a long list for which there is no slot.
	errLongLists = &httpError{http.StatusServiceUnavailable, "too many long lists at once: send it again, or list pages of at most 1000 rows"}

	// errWrites is the answer to a write for which there is no slot.
	errWrites = &httpError{http.StatusServiceUnavailable, "too many writes at once: send it again"}

	// errSearches is the answer to a search for which there is no slot, and errSearchTimeout to one that takes too long.
	errSearches      = &httpError{http.StatusServiceUnavailable, "too many searches at once: send it again, or filter by an ID"}
	errSearchTimeout = &httpError{http.StatusServiceUnavailable, "the search took too long: filter by an ID"}
)

// toHTTPError maps an error to an answer.
func toHTTPError(err error) *httpError {
	if e, ok := errors.AsType[*httpError](err); ok {
		return e
	}
	if problem, ok := errors.AsType[*auth.Problem](err); ok {
		return &httpError{problem.Status, problem.Detail}
	}
	invalid, isInvalid := errors.AsType[*store.FieldError](err)
	tooLarge, isTooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case errors.Is(err, errLimitReached):
		return errBusy
	case errors.Is(err, store.ErrNotFound):
		return &httpError{http.StatusNotFound, err.Error()}
	case errors.Is(err, store.ErrConflict):
		return &httpError{http.StatusConflict, err.Error()}
	case isInvalid:
		return &httpError{http.StatusBadRequest, invalid.Error()}
	case errors.Is(err, store.ErrReference): // Threeport's API quotes the database here
		return &httpError{http.StatusInternalServerError, store.ErrReference.Error()}
	case errors.Is(err, store.ErrRefused):
		return &httpError{http.StatusInternalServerError, store.ErrRefused.Error()}
	case isTooLarge:
		return &httpError{http.StatusRequestEntityTooLarge, "the body is larger than " + strconv.FormatInt(tooLarge.Limit, 10) + " bytes"}
	case errors.Is(err, store.ErrSearchTimeout):
		return errSearchTimeout
	case store.IsTransient(err):
		return errDatabaseUnavailable
	default: // unlike Threeport's API, the answer does not quote the driver's error; the log has it
		return &httpError{http.StatusInternalServerError, "the server could not do this: its log says why"}
	}
}

// isServerError reports whether the server failed. Threeport's API answers 500 to many bad requests as well.
func isServerError(err error, e *httpError) bool {
	_, refused := errors.AsType[*httpError](err)
	badRequest := e.code == http.StatusInternalServerError && (refused || errors.Is(err, store.ErrReference))
	return e.code >= http.StatusInternalServerError && !badRequest
}

// rowFormat is how the rows of a resource are written for a reader.
type rowFormat struct {
	*store.Resource
	document documentView // nil: as stored
}

// writeRows writes the success envelope around rows.
func writeRows(w http.ResponseWriter, r rowFormat, code int, meta threeport.Meta, rows ...store.Row) {
	body := appendRows(appendHead(nil, r.Resource, meta), r, rows)
	writeJSON(w, code, appendTail(body, code))
}

// appendHead appends the envelope before the rows.
func appendHead(b []byte, r *store.Resource, meta threeport.Meta) []byte {
	numbers, _ := json.Marshal(meta) // plain numbers always marshal
	b = append(append(b, `{"Meta":`...), numbers...)
	return append(b, `,"Type":"`+r.Object+`","Data":[`...)
}

// appendTail appends the envelope after the rows.
func appendTail(b []byte, code int) []byte {
	status, _ := json.Marshal(threeport.Status{Code: code, Message: http.StatusText(code)}) // always marshals
	return append(append(append(b, `],"Status":`...), status...), "}\n"...)
}

// rowBytes is about the size of a row in an answer without its texts and documents.
const rowBytes = 512

// size is about the size of rows in an answer.
func (r rowFormat) size(rows []store.Row) (n int64) {
	for _, row := range rows {
		n += int64(r.JSONBytes(row)) + rowBytes
	}
	return n
}

// appendRows appends rows with commas between them. It grows the buffer once for most rows, because an append that grows it
// step by step leaves as much garbage.
func appendRows(b []byte, r rowFormat, rows []store.Row) []byte {
	b = slices.Grow(b, int(r.size(rows)))
	for i, row := range rows {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendRow(b, r, row)
	}
	return b
}

// writeHTTPError writes the error envelope: Meta all zero, Data null.
func writeHTTPError(w http.ResponseWriter, r *store.Resource, e *httpError) {
	body, _ := json.Marshal(threeport.Response[struct{}]{
		Type:   r.Object,
		Status: threeport.Status{Code: e.code, Message: http.StatusText(e.code), Error: e.text},
	})
	writeJSON(w, e.code, append(body, '\n'))
}

// writeRouterError writes the answer of v0's router, which has no envelope.
func writeRouterError(w http.ResponseWriter, code int) {
	writeJSON(w, code, []byte(`{"message":"`+http.StatusText(code)+"\"}\n"))
}

const jsonType = "application/json; charset=UTF-8"

func writeJSON(w http.ResponseWriter, code int, body []byte) {
	w.Header().Set("Content-Type", jsonType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	_, _ = w.Write(body) // fails only if the client has gone
}

// appendRow appends a row as v0's JSON, without the fields that have no value.
func appendRow(b []byte, r rowFormat, row store.Row) []byte {
	b = append(b, `{"ID":`...)
	b = strconv.AppendInt(b, row.ID, 10)
	b = append(b, `,"CreatedAt":"`+wireTime(row.CreatedAt)+`","UpdatedAt":"`+wireTime(row.UpdatedAt)+`"`...)
	if row.DeletedAt != nil {
		b = append(b, `,"DeletedAt":"`+wireTime(*row.DeletedAt)+`"`...)
	}
	for i, f := range r.Fields {
		if row.Values[i] != nil {
			b = appendValue(append(b, `,"`+f.Name+`":`...), f.Kind, row.Values[i], r.document)
		}
	}
	return append(b, '}')
}

func appendValue(b []byte, kind store.Kind, value any, document documentView) []byte {
	switch v := value.(type) {
	case int64:
		if kind == store.Timestamp {
			return append(b, `"`+wireTime(v)+`"`...)
		}
		return strconv.AppendInt(b, v, 10)
	case bool:
		return strconv.AppendBool(b, v)
	case string:
		switch {
		case kind == store.Document && document != nil:
			return append(b, document(v)...)
		case kind == store.Document:
			return append(b, v...)
		}
		quoted, _ := json.Marshal(v) // a string always marshals
		return append(b, quoted...)
	default:
		return append(b, "null"...) // no row has such a value
	}
}

// wireTime is a time in microseconds as RFC 3339, without trailing zeros.
func wireTime(micros int64) string { return time.UnixMicro(micros).UTC().Format(time.RFC3339Nano) }
