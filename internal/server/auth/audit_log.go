package auth

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// Limits of the path and method of an audit record, in bytes.
const (
	maxAuditPath   = 512
	maxAuditMethod = 16
)

// isAudited reports whether a request is recorded: a write by an administrator.
//
// There are two exceptions. Reports of v0 agents are not recorded; they are administrators only because their
// certificates name no group. Without authentication only changes of tokens are recorded, since there is no principal.
func isAudited(p Principal, granted rule, method string) bool {
	switch {
	case isSafe(method) || p.Role != RoleAdmin || granted.kind == kindReportSet:
		return false
	case p.Credential == CredentialNone:
		return granted.kind == kindTokens
	default:
		return granted.kind != kindV0Report || !p.roleByDefault
	}
}

// auditLog writes the audit log, the record of administrators' requests and of log-ins. It is safe for concurrent use.
type auditLog struct {
	store AuditStore
	queue *writeQueue
	log   *slog.Logger
}

// add queues a record of an answered request. It never blocks. A record that cannot be written goes to the program's
// log.
func (l *auditLog) add(at time.Time, principal string, role Role, r *http.Request, code int) {
	path := r.URL.EscapedPath()   // without the query, and always ASCII
	method := printable(r.Method) // HTTP/2 allows any method
	record := store.AuditRecord{
		At: at, Principal: principal, Role: string(role),
		Method: method[:min(len(method), maxAuditMethod)], Path: path[:min(len(path), maxAuditPath)], Code: code,
	}
	queued := l.queue.add(func(ctx context.Context) {
		err := ctx.Err() // checked first, since a store may finish a write after the end of its context
		if err == nil {
			err = l.store.AppendAudit(ctx, record)
		}
		if err != nil {
			l.logLost(record, err.Error())
		}
	})
	if !queued {
		l.logLost(record, "the queue is full or closed")
	}
}

func (l *auditLog) logLost(record store.AuditRecord, reason string) {
	l.log.Error("Audit record not written", "error", reason, "at", record.At, "principal", record.Principal,
		"role", record.Role, "method", record.Method, "path", record.Path, "code", record.Code)
}

// serveAudited serves a request and then records the status of the answer; 500 if the handler panicked before it
// answered.
func (a *Authenticator) serveAudited(w http.ResponseWriter, r *http.Request, p Principal, serve http.HandlerFunc) {
	noted := &statusRecorder{ResponseWriter: w}
	returned := false
	defer func() {
		code := noted.code
		if code == 0 {
			code = http.StatusInternalServerError
			if returned {
				code = http.StatusOK
			}
		}
		a.auditLog.add(a.now(), p.String(), p.Role, r, code)
	}()
	serve(noted, r)
	returned = true
}

// statusRecorder records the status of an answer.
type statusRecorder struct {
	http.ResponseWriter
	code int // 0 before the answer
}

// Unwrap supports [http.ResponseController].
func (w *statusRecorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader records the first status that is not informational.
func (w *statusRecorder) WriteHeader(code int) {
	if w.code == 0 && code >= http.StatusOK {
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

// Write records status 200 if there was none.
func (w *statusRecorder) Write(body []byte) (int, error) {
	if w.code == 0 {
		w.code = http.StatusOK
	}
	return w.ResponseWriter.Write(body)
}

// AuditRecord is a request by an administrator, or a log-in.
type AuditRecord struct {
	ID threeport.ID `json:"id"`
	At time.Time    `json:"at"`
	// Principal is the kind and name of the caller's credential, separated by a colon; or anonymous and an address.
	Principal string `json:"principal"`
	Role      Role   `json:"role,omitempty"`
	Method    string `json:"method"`
	// Path has no query.
	Path string `json:"path"`
	Code int    `json:"code"`
}

// Input and output of [AuditAPI.List] for huma.
type (
	// ListAuditInput selects a page.
	ListAuditInput struct {
		Cursor string `query:"cursor" doc:"The next of an earlier answer"`
		Size   int    `query:"size" minimum:"1" maximum:"500" default:"100"`
	}
	// ListAuditOutput is a page of the audit log.
	ListAuditOutput struct {
		Body threeport.List[AuditRecord]
	}
)

// AuditAPI has the operation below /v0/audit-records. Its errors are [*Problem].
type AuditAPI struct{ access *Authenticator }

// AuditLog returns the operation below /v0/audit-records.
func (a *Authenticator) AuditLog() *AuditAPI { return &AuditAPI{a} }

// List returns a page of the audit log, newest first: GET /v0/audit-records.
func (l *AuditAPI) List(ctx context.Context, input *ListAuditInput) (*ListAuditOutput, error) {
	stored, err := l.access.store.AuditRecords(ctx, input.Cursor, input.Size)
	if err != nil {
		return nil, l.access.problemFor("list audit records", err)
	}
	page := threeport.List[AuditRecord]{Items: make([]AuditRecord, len(stored.Items)), Next: stored.Next, Total: stored.Total}
	for i, record := range stored.Items {
		page.Items[i] = wireRecord(record)
	}
	return &ListAuditOutput{page}, nil
}

func wireRecord(r store.AuditRecord) AuditRecord {
	return AuditRecord{
		ID: threeport.ID(r.ID), At: r.At, Principal: r.Principal, Role: Role(r.Role),
		Method: r.Method, Path: r.Path, Code: r.Code,
	}
}
