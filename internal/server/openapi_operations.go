package server

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// The tags of operations.
const (
	tagReports = "reports"
	tagBoard   = "board"
	tagAccess  = "access"
	tagV0      = "v0"
)

// commonErrors are the errors of every operation; huma adds 422 and 500.
var commonErrors = []int{
	http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable,
}

// badParameters are the errors of every operation with parameters.
var badParameters = append([]int{http.StatusBadRequest, http.StatusUnprocessableEntity}, commonErrors...)

// readOperation describes an operation that reads a list.
func readOperation(id, tag, summary, description string) huma.Operation {
	return huma.Operation{OperationID: id, Tags: []string{tag}, Summary: summary, Description: description, Errors: badParameters}
}

// readItemOperation describes an operation that reads what its path names, which may not exist.
func readItemOperation(id, tag, summary, description string) huma.Operation {
	op := readOperation(id, tag, summary, description)
	op.Errors = append([]int{http.StatusNotFound}, badParameters...)
	return op
}

// The operations of administrators, which package auth serves.
var (
	listTokensOperation = readOperation("list-tokens", tagAccess, "List tokens",
		"All tokens without their secrets, including revoked and expired ones.")
	createTokenOperation = huma.Operation{
		OperationID: "create-token", DefaultStatus: http.StatusCreated,
		Tags: []string{tagAccess}, Summary: "Create a token", Description: "Only this answer has its secret.",
		Errors: append([]int{http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType}, badParameters...),
	}
	revokeTokenOperation = huma.Operation{
		OperationID: "revoke-token",
		Tags:        []string{tagAccess}, Summary: "Revoke a token", Description: "Also ends all sessions that were opened with it.",
		Errors: append([]int{http.StatusNotFound}, badParameters...),
	}
	listAuditRecordsOperation = readOperation("list-audit-records", tagAccess, "List audit records",
		"Writes of administrators, reads of definitions by people, refused requests and log-ins, with their principals. The newest first.")
)
