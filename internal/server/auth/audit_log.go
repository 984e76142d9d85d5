package auth

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// Limits of the path and method of an audit record, in bytes.
const (
	maxAuditPath   = 512
	maxAuditMethod = 16
)

// The limits of records of refusals: of a credential or an address, and of all known or of all unknown callers. A flood of
// refused requests must not become a flood of writes.
var (
	refusalRate     = Rate{PerSecond: 1.0 / 6, Burst: 20}
	allRefusalsRate = Rate{PerSecond: 2, Burst: 200}
)

// The limits of records of a principal's reads: of one path, and of all paths. Controllers read the same rows repeatedly, and
// each record is a write. logInRate limits the records of a principal's log-ins.
var (
	readRate     = Rate{PerSecond: 1.0 / 60, Burst: 1}
	allReadsRate = Rate{PerSecond: 1, Burst: 50}
	logInRate    = allReadsRate
)

// furtherReads is the [AuditObject.Type] of a read after which reads of the same principal are not recorded one by one, since
// they exceed allReadsRate.
const furtherReads = "FurtherReads"

// isAudited reports whether a request is recorded: a write by an administrator, whatever its answer, or a read of definitions by
// a person, unless it fails. The renewal of a token is recorded unless it fails.
//
// There are exceptions. Requests of agents are not recorded: neither report sets, nor reads and v0 reports of certificates
// without a group, which v0 agents have. Without authentication only changes of tokens are recorded, since there is no
// principal.
func isAudited(p Principal, granted Rule, method string) bool {
	switch {
	case p.Credential == CredentialNone:
		return granted.Kind == KindTokens || granted.Kind == KindRenewal
	case granted.Kind == KindRenewal:
		return true
	case granted.Kind == KindDefinition:
		return p.Role != RoleAgent && !p.roleByDefault
	case isSafe(method) || p.Role != RoleAdmin || granted.Kind == KindReportSet:
		return false
	default:
		return granted.Kind != KindV0Report || !p.roleByDefault
	}
}

// AuditObject is the object that a request made, changed or read.
type AuditObject struct {
	Type string `json:"type"`
	ID   string `json:"id,omitempty"`
	// Name and Role are those of a token. Name is also the name of an object in a cluster, and the cluster that an instance
	// was assigned to or released from.
	Name string `json:"name,omitempty"`
	Role Role   `json:"role,omitempty"`
}

// auditObjectKey is the context key of the [AuditObject] of a request.
type auditObjectKey struct{}

// SetAuditObject names the object of a request in its audit record. It has no effect on a request that did not pass
// [Authenticator.Middleware].
func SetAuditObject(ctx context.Context, object AuditObject) {
	if kept, ok := ctx.Value(auditObjectKey{}).(*AuditObject); ok {
		*kept = object
	}
}

// auditObject is the object of a request; empty if it names none.
func auditObject(ctx context.Context) AuditObject {
	if kept, ok := ctx.Value(auditObjectKey{}).(*AuditObject); ok {
		return *kept
	}
	return AuditObject{}
}

// stored is the object in the store's form.
func (o AuditObject) stored() store.AuditObject {
	return store.AuditObject{Type: o.Type, ID: o.ID, Name: o.Name, Role: string(o.Role)}
}

// auditLog writes the audit log: the record of administrators' requests, of reads of definitions, of refusals and of
// log-ins. It is safe for concurrent use.
type auditLog struct {
	store AuditStore
	queue *writeQueue
	lost  *lossLog
}

// add queues a record of an answered request. It never blocks. The program's log has the loss of records that cannot be written.
func (l *auditLog) add(at time.Time, principal string, role Role, r *http.Request, code int) {
	path := r.URL.EscapedPath()   // without the query, and always ASCII
	method := printable(r.Method) // HTTP/2 allows any method
	record := store.AuditRecord{
		At: at, Principal: principal, Role: string(role),
		Method: method[:min(len(method), maxAuditMethod)], Path: path[:min(len(path), maxAuditPath)], Code: code,
		Object: auditObject(r.Context()).stored(),
	}
	l.append(record)
}

// append queues a record.
func (l *auditLog) append(record store.AuditRecord) {
	queue := l.queue.add
	if isProtected(record) {
		queue = l.queue.addProtected
	}
	queued := queue(func(ctx context.Context) {
		err := ctx.Err() // checked first, since a store may finish a write after the end of its context
		if err == nil {
			err = l.store.AppendAudit(ctx, record)
		}
		if err != nil {
			l.lost.add(record, err.Error())
		}
	})
	if !queued {
		l.lost.add(record, "the queue is full or closed")
	}
}

// isProtected reports whether no flood of other requests may displace a record: that of a write or log-in of an administrator.
// Only administrators change tokens.
func isProtected(record store.AuditRecord) bool {
	return record.Role == string(RoleAdmin) && !isRefusal(record.Code) &&
		(!isSafe(record.Method) || record.Path == CallbackPath) // single sign-on logs in with a GET
}

// isRefusal reports whether a status refuses a request before it has an effect.
func isRefusal(code int) bool {
	return code == http.StatusUnauthorized || code == http.StatusForbidden || code == http.StatusTooManyRequests
}

// serveRecorded serves a request and then records the status of the answer, if the request is audited or was refused. The
// status is 500 if the handler panicked before it answered.
func (a *Authenticator) serveRecorded(w http.ResponseWriter, r *http.Request, p Principal, granted Rule, next http.Handler) {
	r = r.WithContext(context.WithValue(r.Context(), auditObjectKey{}, &AuditObject{}))
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
		if a.isRecorded(p, granted, r, code) {
			a.auditLog.add(a.now(), p.String(), p.Role, r, code)
		}
	}()
	a.serveAuthorized(noted, r, p, granted, next)
	returned = true
}

// RecordClaim records that a report of an agent assigned an instance to the cluster of the agent. The record has the method and
// path of an assignment by an administrator.
func (a *Authenticator) RecordClaim(p Principal, instance threeport.Instance) {
	record := AssignmentRecord(http.MethodPut, instance, p.ClusterUID)
	record.At, record.Principal, record.Role = a.now(), p.String(), string(p.Role)
	a.auditLog.append(record)
}

// AssignmentRecord is the audit record of a request that assigns an instance to a cluster or releases it, without its caller.
func AssignmentRecord(method string, instance threeport.Instance, clusterUID string) store.AuditRecord {
	id := strconv.FormatInt(int64(instance.ID), 10)
	return store.AuditRecord{
		Method: method, Path: "/v0/workloads/" + instance.Type + "/" + id + "/cluster", Code: http.StatusOK,
		Object: store.AuditObject{Type: instance.Type, ID: id, Name: clusterUID},
	}
}

// isRecorded reports whether an answered request is recorded: if it is audited or was refused, within the limits of records.
func (a *Authenticator) isRecorded(p Principal, granted Rule, r *http.Request, code int) bool {
	audited := isAudited(p, granted, r.Method)
	switch {
	case code == http.StatusForbidden:
		return a.admitRefusal(p.String(), true)
	case !audited:
		return false
	case granted.Kind == KindRenewal:
		return code < http.StatusBadRequest // others change nothing, and an agent may repeat them without end
	case granted.Kind == KindDefinition:
		return code < http.StatusBadRequest && a.admitRead(p, r)
	case isRefusal(code):
		return a.admitRefusal(p.String(), true)
	default:
		return true
	}
}

// admitRead reports whether a read is recorded. A principal who reads more than allReadsRate has one record of that a minute,
// whose object is furtherReads.
func (a *Authenticator) admitRead(p Principal, r *http.Request) bool {
	now, path := a.now(), r.URL.Path
	if a.limits.reads.reserve(p.String()+" "+path[:min(len(path), maxAuditPath)], now) > 0 {
		return false
	}
	if a.limits.allReads.reserve(p.LimitKey(), now) == 0 {
		return true
	}
	SetAuditObject(r.Context(), AuditObject{Type: furtherReads})
	return a.limits.reads.reserve(p.LimitKey()+" "+furtherReads, now) == 0
}

// recordLogIn records a log-in, within the limit of its principal.
func (a *Authenticator) recordLogIn(p Principal, r *http.Request, code int) {
	if now := a.now(); a.limits.recordedLogIns.reserve(p.LimitKey(), now) == 0 {
		a.auditLog.add(now, p.String(), p.Role, r, code)
	}
}

// recordUnauthenticated records and logs the refusal of a known credential: of a token that expired or was revoked, or of a
// certificate of a trusted authority. Other credentials cost no write.
func (a *Authenticator) recordUnauthenticated(r *http.Request, p Principal, err error) {
	problem, ok := errors.AsType[*Problem](err)
	if !ok || problem.Status != http.StatusUnauthorized || p.Name == "" || !a.admitRefusal(p.String(), true) {
		return
	}
	a.log.Warn("Credential refused", "principal", p.String(), "method", r.Method, "path", r.URL.EscapedPath(), "reason", problem.Detail)
	a.auditLog.add(a.now(), p.String(), p.Role, r, problem.Status)
}

// admitRefusal reports whether a refusal may be recorded. Callers without a known credential have limits of their own, so
// that they cannot use up those of the others.
func (a *Authenticator) admitRefusal(caller string, known bool) bool {
	now := a.now()
	return a.limits.refusals.reserve(caller, now) == 0 && a.limits.allRefusals.reserve(strconv.FormatBool(known), now) == 0
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

// AuditRecord is a request of an administrator, a read of definitions, a refusal, or a log-in.
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
	// Object is the object that the request made, changed or read, if it names one.
	Object *AuditObject `json:"object,omitempty"`
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
	record := AuditRecord{
		ID: threeport.ID(r.ID), At: r.At, Principal: r.Principal, Role: Role(r.Role),
		Method: r.Method, Path: r.Path, Code: r.Code,
	}
	if of := r.Object; of != (store.AuditObject{}) {
		record.Object = &AuditObject{Type: of.Type, ID: of.ID, Name: of.Name, Role: Role(of.Role)}
	}
	return record
}
