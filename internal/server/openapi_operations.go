package server

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// The tags of operations.
const (
	tagReports   = "reports"
	tagWorkloads = "board" // clients know this name
	tagAccess    = "access"
	tagV0        = "v0"
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

// itemOperation describes an operation on the object in its path, which may not exist.
func itemOperation(id, tag, summary, description string) huma.Operation {
	op := readOperation(id, tag, summary, description)
	op.Errors = append([]int{http.StatusNotFound}, badParameters...)
	return op
}

// The operations of package auth, for administrators and for the bearers of tokens.
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
	getOwnTokenOperation = huma.Operation{
		OperationID: "get-own-token",
		Tags:        []string{tagAccess}, Summary: "Get the token of the request",
		Description: "For agents. Without a bearer token, the answer is 409.",
		Errors:      append([]int{http.StatusConflict}, badParameters...),
	}
	renewTokenOperation = huma.Operation{
		OperationID: "renew-token", DefaultStatus: http.StatusCreated,
		Tags: []string{tagAccess}, Summary: "Renew the token of the request",
		Description: "For agents. Only this answer has the new secret. The replaced one is valid for another day, or until its end if that is " +
			"sooner. A renewal is due after two thirds of the life of a token. The replaced token may be renewed again five minutes after a " +
			"renewal, since the answer may have been lost. The answer is 409 if the renewal is not due, or if the token is not renewable.",
		Errors: append([]int{http.StatusConflict}, badParameters...),
	}
	listAuditRecordsOperation = readOperation("list-audit-records", tagAccess, "List audit records",
		"Writes of administrators, reads of definitions by people, refused requests and log-ins, with their principals. The newest first.")
)
