package auth

import (
	"context"
	"time"

	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// AuditRecord tells of a request that was answered.
type AuditRecord struct {
	ID threeport.ID `json:"id"`
	At time.Time    `json:"at"`
	// Principal is who asked: the kind of credential, a colon, and its name; or anonymous and an address.
	Principal string `json:"principal"`
	Role      Role   `json:"role,omitempty"`
	Method    string `json:"method"`
	// Path is without the query.
	Path string `json:"path"`
	Code int    `json:"code"`
}

// The input and output of [AuditLog.List], as huma wants them.
type (
	// ListAuditInput asks for a page.
	ListAuditInput struct {
		Cursor string `query:"cursor" doc:"The next of an earlier answer"`
		Size   int    `query:"size" minimum:"1" maximum:"500" default:"100"`
	}
	// ListAuditOutput has it.
	ListAuditOutput struct {
		Body threeport.List[AuditRecord]
	}
)

// AuditLog is the operation below /v0/audit-records. Its errors are [*Problem].
type AuditAPI struct{ access *Authenticator }

// AuditLog returns the operation below /v0/audit-records.
func (a *Authenticator) AuditLog() *AuditAPI { return &AuditAPI{a} }

// List returns a page of records, newest first: GET /v0/audit-records.
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
