package upstream

import (
	"net/http"
	"strings"
)

// Refusal is the body with which the control plane refuses a request to a path: v0's envelope, or, of what v0 does not
// have, a problem (RFC 9457).
func Refusal(path string, status int, why string) any {
	if strings.HasPrefix(strings.TrimPrefix(path, "/v0"), "/"+WorkloadReportSets) {
		return map[string]any{"title": http.StatusText(status), "status": status, "detail": why}
	}
	return map[string]any{
		"Meta": map[string]any{}, "Data": nil,
		"Status": map[string]any{"code": status, "message": http.StatusText(status), "error": why},
	}
}
