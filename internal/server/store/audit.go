package store

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// AuditRecord is a request that changed something of the API's own, or tried to.
type AuditRecord struct {
	ID int64
	At time.Time
	// Principal is who asked, by name, and Role in which role.
	Principal, Role string
	Method, Path    string
	Code            int // of the answer
}

// AppendAudit keeps a record. Its ID is given here; its time, if it has none, is now.
func (s *Store) AppendAudit(ctx context.Context, r AuditRecord) error {
	if r.At.IsZero() {
		r.At = time.Now()
	}
	err := s.exec(ctx, "INSERT INTO audit_records (id, at, principal, role, method, path, code) VALUES (?, ?, ?, ?, ?, ?, ?)",
		s.ids.next(), r.At.UnixMicro(), r.Principal, r.Role, r.Method, r.Path, r.Code)
	if err != nil {
		return fmt.Errorf("append audit record: %w", err)
	}
	return nil
}

// AuditRecords returns a page of records, the newest first, after the cursor that the page before gave. The error is a
// [FieldError] if it gave none such, or if the size is not one of a page.
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
	if page.Total, err = first(ctx, s, "SELECT COUNT(*) FROM audit_records", nil, number); err != nil {
		return page, fmt.Errorf("count audit records: %w", err)
	}
	found, err := collect(ctx, s, "SELECT id, at, principal, role, method, path, code FROM audit_records WHERE id < ? ORDER BY id DESC LIMIT ?",
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
	err = scan(&r.ID, &at, &r.Principal, &r.Role, &r.Method, &r.Path, &r.Code)
	r.At = fromMicros(at)
	return r, err
}
