package store

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// AuditRecord is an entry of the audit log: a request with its caller and its answer.
type AuditRecord struct {
	ID int64
	At time.Time
	// Principal is the kind and name of the caller's credential.
	Principal, Role string
	Method, Path    string
	Code            int // HTTP status of the answer
	Object          AuditObject
}

// AuditObject is the object that a request made, changed or read. Unknown fields are empty. Role is that of a token.
type AuditObject struct{ Type, ID, Name, Role string }

const auditColumns = "id, at, principal, role, method, path, code, objecttype, objectid, objectname, objectrole"

// AppendAudit stores a record with a new ID. A zero time becomes the current one.
func (s *Store) AppendAudit(ctx context.Context, r AuditRecord) error {
	if r.At.IsZero() {
		r.At = time.Now()
	}
	err := s.exec(ctx, "INSERT INTO audit_records ("+auditColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		s.ids.next(), r.At.UnixMicro(), r.Principal, r.Role, r.Method, r.Path, r.Code,
		r.Object.Type, r.Object.ID, r.Object.Name, r.Object.Role)
	if err != nil {
		return fmt.Errorf("append audit record: %w", err)
	}
	return nil
}

// AuditRecords returns a page of records, newest first. cursor is the Next of the previous page, or empty. The error is
// a [FieldError] if the cursor or the size is invalid.
func (s *Store) AuditRecords(ctx context.Context, cursor string, size int) (threeport.List[AuditRecord], error) {
	page := threeport.List[AuditRecord]{Items: []AuditRecord{}}
	size, err := pageSize(size)
	if err != nil {
		return page, err
	}
	before := int64(math.MaxInt64)
	if cursor != "" {
		if before, err = decodeCursor[int64](cursor); err != nil {
			return page, err
		}
	}
	if page.Total, err = first(ctx, s.read, "SELECT COUNT(*) FROM audit_records", nil, number); err != nil {
		return page, fmt.Errorf("count audit records: %w", err)
	}
	found, err := collect(ctx, s.read, "SELECT "+auditColumns+" FROM audit_records WHERE id < ? ORDER BY id DESC LIMIT ?",
		[]any{before, size + 1}, scanAudit)
	if err != nil {
		return page, fmt.Errorf("list audit records: %w", err)
	}
	page.Items = append(page.Items, found[:min(len(found), size)]...)
	if len(found) > size {
		page.Next, err = encodeCursor(page.Items[size-1].ID)
	}
	return page, err
}

func scanAudit(scan scanner) (r AuditRecord, err error) {
	var at int64
	err = scan(&r.ID, &at, &r.Principal, &r.Role, &r.Method, &r.Path, &r.Code,
		&r.Object.Type, &r.Object.ID, &r.Object.Name, &r.Object.Role)
	r.At = fromMicros(at)
	return r, err
}
