package server

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/testing/databases"
	"github.com/threeport/threeport-agent/internal/testing/postgres"
)

// Answers quote nothing of the database, and temporary failures differ from permanent ones.
func TestToHTTPError_Database(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
		text string
	}{
		{err: &pgconn.PgError{Code: "57P01", Message: "hunter2"}, code: http.StatusServiceUnavailable, text: "send it again"},
		{err: &pgconn.PgError{Code: "53100", Message: "hunter2"}, code: http.StatusServiceUnavailable, text: "send it again"}, // its disk is full
		{err: &pgconn.ConnectError{}, code: http.StatusServiceUnavailable, text: "send it again"},
		{err: &pgconn.PgError{Code: "42P01", Message: "hunter2"}, code: http.StatusInternalServerError, text: "its log says why"},
		{err: fmt.Errorf("commit: %w", io.ErrUnexpectedEOF), code: http.StatusServiceUnavailable, text: "send it again"},
		{err: bodyError(io.ErrUnexpectedEOF), code: http.StatusInternalServerError, text: "read body: unexpected EOF"},
		{err: bodyError(&http.MaxBytesError{Limit: 7}), code: http.StatusRequestEntityTooLarge, text: "larger than 7 bytes"},
		{err: errors.New("hunter2"), code: http.StatusInternalServerError, text: "its log says why"},
	} {
		if f := toHTTPError(fmt.Errorf("write: %w", c.err)); f.code != c.code || !strings.Contains(f.text, c.text) || strings.Contains(f.text, "hunter2") {
			t.Errorf("%v: the answer is %d %s, want %d", c.err, f.code, f.text, c.code)
		}
	}
}

func TestV0_WithoutDatabase_IsAnsweredWith503(t *testing.T) {
	databases.OnPrivatePostgres(t, func(t *testing.T, server *postgres.Server) {
		t.Helper()
		opened, err := store.Open(t.Context(), store.Config{Address: server.Address("postgres")})
		if err != nil {
			t.Fatal(err)
		}
		defer opened.Close() //nolint:errcheck // its server is gone
		api := Handler(opened, slog.New(slog.DiscardHandler))
		server.Kill()
		for _, x := range []exchange{
			{method: "POST", path: "/v0/workload-instances", body: `{"Name":"web"}`},
			{method: "PATCH", path: "/v0/workload-instances/1", body: `{"Status":"Healthy"}`},
			{method: "DELETE", path: "/v0/workload-events/1"},
			{method: "GET", path: "/v0/workload-instances/1"},
			{method: "GET", path: "/v0/workload-events"},
		} {
			answer := httptest.NewRecorder()
			req := httptest.NewRequestWithContext(t.Context(), x.method, x.path, strings.NewReader(x.body))
			req.Header.Set("Content-Type", "application/json")
			api.ServeHTTP(answer, req)
			const want = `"code":503,"message":"Service Unavailable","error":"the database does not answer, or cannot write: send it again"}`
			if body := answer.Body.String(); answer.Code != http.StatusServiceUnavailable || answer.Header().Get("Retry-After") != "1" || !strings.Contains(body, want) {
				t.Errorf("%s %s: %d, Retry-After %q, %s, want %d and \"1\"", x.method, x.path, answer.Code, answer.Header().Get("Retry-After"), body, http.StatusServiceUnavailable)
			}
		}
	})
}
