package store

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/threeport/threeport-agent/internal/controlplane"
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
// [ParameterError] if it gave none such, or if the size is not one of a page.
func (s *Store) AuditRecords(ctx context.Context, cursor string, size int) (controlplane.List[AuditRecord], error) {
	page := controlplane.List[AuditRecord]{Items: []AuditRecord{}}
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
	if err := s.read.QueryRowContext(ctx, "SELECT COUNT(*) FROM audit_records").Scan(&page.Total); err != nil {
		return page, fmt.Errorf("count audit records: %w", err)
	}
	rows, err := s.read.QueryContext(ctx, s.dialect.rebind(
		"SELECT id, at, principal, role, method, path, code FROM audit_records WHERE id < ? ORDER BY id DESC LIMIT ?"), before, size+1)
	if err != nil {
		return page, fmt.Errorf("list audit records: %w", err)
	}
	defer rows.Close() //nolint:errcheck // its error is that of Err
	for rows.Next() {
		var r AuditRecord
		var at int64
		if err := rows.Scan(&r.ID, &at, &r.Principal, &r.Role, &r.Method, &r.Path, &r.Code); err != nil {
			return page, fmt.Errorf("list audit records: %w", err)
		}
		if len(page.Items) == size {
			page.Next, err = encodeCursor(page.Items[size-1].ID)
			return page, err
		}
		r.At = fromMicros(at)
		page.Items = append(page.Items, r)
	}
	return page, rows.Err()
}
