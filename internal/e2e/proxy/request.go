package proxy

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/threeport/threeport-agent/internal/e2e/oracle"
)

// Request is a request of an agent to the control plane.
type Request struct {
	From     string // name of the address in Listen
	Method   string
	Path     string         // with the query
	Body     []byte         // decoded
	Writes   []oracle.Write // requested writes in the form of v0; a report set has many
	At       time.Time
	Accepted bool // by the control plane, even if the agent received another answer

	header http.Header
	sent   []byte // the body as the agent sent it
}

// newRequest returns a request with its body as the agent sent it. With an error, the request has no writes.
func newRequest(from string, req *http.Request, body []byte) (Request, error) {
	r := Request{From: from, Method: req.Method, Path: req.URL.RequestURI(), header: req.Header.Clone(), At: time.Now(), sent: body}
	var err error
	if r.Body, err = oracle.DecodeBody(r.sent, r.header.Get("Content-Encoding")); err != nil || r.Method == http.MethodGet {
		return r, err
	}
	r.Writes, err = oracle.Writes(r.asWrite())
	return r, err
}

func (r Request) asWrite() oracle.Write {
	return oracle.Write{Method: r.Method, Path: r.Path, Body: r.Body}
}

// Any matches every request.
func Any(Request) bool { return true }

// IsReportSet reports whether a request contains a report set.
func (r Request) IsReportSet() bool { return r.asWrite().IsReportSet() }

// IsWrite reports whether a request changes a row. A heartbeat does not.
func (r Request) IsWrite() bool { return len(r.Writes) > 0 }

// IsAcceptedWrite reports whether the control plane accepted a request that changes a row.
func (r Request) IsAcceptedWrite() bool { return r.IsWrite() && r.Accepted }

// IsHeartbeat reports whether a request is a heartbeat.
func (r Request) IsHeartbeat() bool { return r.Method == http.MethodPost && !r.IsWrite() }

// WritesTo reports whether a request writes to a row, given by its path in v0.
func (r Request) WritesTo(path string) bool {
	return slices.ContainsFunc(r.Writes, func(w oracle.Write) bool { return w.Path == path })
}

// WritesOnlyTo reports whether a request writes only to that row.
func (r Request) WritesOnlyTo(path string) bool {
	return len(r.Writes) == 1 && r.Writes[0].Path == path
}

// WritesToAny reports whether a request writes to any row of a collection of v0.
func (r Request) WritesToAny(objects string) bool {
	return slices.ContainsFunc(r.Writes, func(w oracle.Write) bool { return strings.HasPrefix(w.Path, "/v0/"+objects) })
}

// Contains reports whether a text is in the bodies of its writes.
func (r Request) Contains(text string) bool {
	return slices.ContainsFunc(r.Writes, func(w oracle.Write) bool { return strings.Contains(string(w.Body), text) })
}

// keys returns the keys of its writes: the UID of an Event, the path of another row.
func (r Request) keys() []string {
	var keys []string
	for _, w := range r.Writes {
		key := w.Path
		var ev struct{ RuntimeEventUID string }
		if json.Unmarshal(w.Body, &ev) == nil && ev.RuntimeEventUID != "" {
			key = ev.RuntimeEventUID
		}
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
