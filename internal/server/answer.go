package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// failure is an answer other than success.
type failure struct {
	code int
	text string // the answer's Status.error
}

// Error is the text of the answer.
func (f *failure) Error() string { return f.text }

// errDatabaseAway is where v0 answers 500, as it does to what will never be taken, with the words of the database's driver.
var errDatabaseAway = &failure{http.StatusServiceUnavailable, "the database does not answer, or cannot write: send it again"}

// failureOf finds the answer that fits an error.
func failureOf(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	wrong, isWrong := errors.AsType[*store.FieldError](err)
	tooLarge, isTooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return &failure{http.StatusNotFound, err.Error()}
	case errors.Is(err, store.ErrConflict):
		return &failure{http.StatusConflict, err.Error()}
	case isWrong:
		return &failure{http.StatusBadRequest, wrong.Error()}
	case errors.Is(err, store.ErrReference): // where v0 has the database's own words
		return &failure{http.StatusInternalServerError, store.ErrReference.Error()}
	case errors.Is(err, store.ErrRefused):
		return &failure{http.StatusInternalServerError, store.ErrRefused.Error()}
	case isTooLarge:
		return &failure{http.StatusRequestEntityTooLarge, "the body is larger than " + strconv.FormatInt(tooLarge.Limit, 10) + " bytes"}
	case store.IsTransient(err):
		return errDatabaseAway
	default: // where v0 has the words of the database's driver, which are for whoever runs it
		return &failure{http.StatusInternalServerError, "the server could not do this: its log says why"}
	}
}

// isOwnFault tells whether an error, and the answer to it, is a failure of the server's own, rather than of what it was
// asked, to much of which v0 answers 500 as well.
func isOwnFault(err error, f *failure) bool {
	_, refused := errors.AsType[*failure](err)
	asked := f.code == http.StatusInternalServerError && (refused || errors.Is(err, store.ErrReference))
	return f.code >= http.StatusInternalServerError && !asked
}

// answerRows writes the success envelope around rows.
func answerRows(w http.ResponseWriter, r *store.Resource, code int, meta threeport.Meta, rows ...store.Row) {
	head, _ := json.Marshal(meta) // plain numbers always marshal
	body := append([]byte(`{"Meta":`), head...)
	body = append(body, `,"Type":"`+r.Object+`","Data":[`...)
	for i, o := range rows {
		if i > 0 {
			body = append(body, ',')
		}
		body = appendRow(body, r, o)
	}
	status, _ := json.Marshal(threeport.Status{Code: code, Message: http.StatusText(code)})
	body = append(append(append(body, `],"Status":`...), status...), "}\n"...)
	writeJSON(w, code, body)
}

// answerFailure writes the error envelope: Meta all zero, Data null.
func answerFailure(w http.ResponseWriter, r *store.Resource, f *failure) {
	body, _ := json.Marshal(threeport.Response[struct{}]{
		Type:   r.Object,
		Status: threeport.Status{Code: f.code, Message: http.StatusText(f.code), Error: f.text},
	})
	writeJSON(w, f.code, append(body, '\n'))
}

// answerBare is the router's own answer, without an envelope.
func answerBare(w http.ResponseWriter, code int) {
	writeJSON(w, code, []byte(`{"message":"`+http.StatusText(code)+"\"}\n"))
}

func writeJSON(w http.ResponseWriter, code int, body []byte) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	_, _ = w.Write(body) // the client has gone: there is no one to tell
}
