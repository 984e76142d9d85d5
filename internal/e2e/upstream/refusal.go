package upstream

import (
	"net/http"
	"strings"
)

// Refusal returns the body of an error response to a request: v0's envelope for paths of v0, a problem (RFC 9457) for others.
func Refusal(path string, status int, why string) any {
	if strings.HasPrefix(strings.TrimPrefix(path, "/v0"), "/"+WorkloadReportSets) {
		return map[string]any{"title": http.StatusText(status), "status": status, "detail": why}
	}
	return map[string]any{
		"Meta": map[string]any{}, "Data": nil,
		"Status": map[string]any{"code": status, "message": http.StatusText(status), "error": why},
	}
}
