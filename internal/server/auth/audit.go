package auth

import (
	"context"
	"net/http"

	"github.com/threeport/threeport-agent/internal/server/store"
)

// maxAuditPath bounds the path of an audit record, and maxAuditMethod its method, in bytes.
const (
	maxAuditPath   = 512
	maxAuditMethod = 16
)

// isAudited tells whether a request leaves a record: it writes, and it is an administrator's.
//
// Two cases are left out. What an agent writes is not recorded if the principal is an administrator only for want of a
// group in its certificate: it is an agent of v0, and every Event would have a record. And while authentication is
// disabled there is nobody to tell of, so only changes of tokens are recorded.
func isAudited(p Principal, granted Rule, method string) bool {
	switch {
	case isSafe(method) || p.Role != RoleAdmin || granted.Class == ReportSet:
		return false
	case p.Credential == CredentialNone:
		return granted.Class == TokenChange
	default:
		return granted.Class != V0Write || !p.assumed
	}
}

// audit records that a request was answered. It does not wait for the record to be written.
func (a *Access) audit(principal string, role Role, r *http.Request, code int) {
	path := r.URL.EscapedPath()   // without the query, and ASCII whatever was sent
	method := printable(r.Method) // which HTTP/2 does not look at
	a.append(store.AuditRecord{
		At: a.now(), Principal: principal, Role: string(role),
		Method: method[:min(len(method), maxAuditMethod)], Path: path[:min(len(path), maxAuditPath)], Code: code,
	})
}

// append hands a record to the backlog. One that cannot be written goes to the log, and is counted.
func (a *Access) append(record store.AuditRecord) {
	taken := a.backlog.add(func(ctx context.Context) {
		err := ctx.Err() // a store may finish what it began, whatever becomes of ctx: it must not begin
		if err == nil {
			err = a.store.AppendAudit(ctx, record)
		}
		if err != nil {
			a.unwritten(record, err.Error())
		}
	})
	if !taken {
		a.unwritten(record, "too many wait to be written")
	}
}

func (a *Access) unwritten(record store.AuditRecord, why string) {
	a.auditFailures.Add(1)
	a.log.Error("Audit record not written", "error", why, "at", record.At, "principal", record.Principal,
		"role", record.Role, "method", record.Method, "path", record.Path, "code", record.Code)
}

// AuditFailures counts the audit records that could not be written; they are in the log.
func (a *Access) AuditFailures() int64 { return a.auditFailures.Load() }

// serveAudited serves a request and then records what was answered; 500 if the handler panicked before it did.
func (a *Access) serveAudited(w http.ResponseWriter, r *http.Request, p Principal, serve http.HandlerFunc) {
	noted := &answer{ResponseWriter: w}
	returned := false
	defer func() {
		code := noted.code
		if code == 0 {
			code = http.StatusInternalServerError
			if returned {
				code = http.StatusOK
			}
		}
		a.audit(p.String(), p.Role, r, code)
	}()
	serve(noted, r)
	returned = true
}

// answer notes the code of an answer.
type answer struct {
	http.ResponseWriter
	code int // 0 until there is one
}

// Unwrap lets [http.ResponseController] find what the server's own writer can.
func (w *answer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader notes the first code that is not informational.
func (w *answer) WriteHeader(code int) {
	if w.code == 0 && code >= http.StatusOK {
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

// Write makes the code 200 if there is none.
func (w *answer) Write(body []byte) (int, error) {
	if w.code == 0 {
		w.code = http.StatusOK
	}
	return w.ResponseWriter.Write(body)
}
