package server

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// A client that does not read its long list keeps its slot for a stall timeout. With TLS, closing its connection takes 5 s more.
func TestStallTimeout_ClientThatDoesNotRead_ReleasesItsSlot(t *testing.T) {
	s := openServer(t, func(*Config) {})
	createEvents(t, s.store, 300, 64<<10)
	handler, _ := s.http.Handler.(*stallHandler)
	handler.timeout = 200 * time.Millisecond
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			served := httptest.NewUnstartedServer(handler)
			served.EnableHTTP2 = http2
			served.StartTLS()
			defer served.Close()
			list := func() *http.Response {
				t.Helper()
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, served.URL+"/v0/workload-events?size=-1", http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				resp, err := served.Client().Do(req)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = resp.Body.Close() })
				return resp
			}
			stalled := list() //nolint:bodyclose // its cleanup closes it
			if stalled.StatusCode != http.StatusOK || (stalled.ProtoMajor == 2) != http2 {
				t.Fatalf("the answer is %s with %s, want %d with %s", stalled.Status, stalled.Proto, http.StatusOK, name)
			}
			begin := time.Now()
			next := list()                                                            //nolint:bodyclose // its cleanup closes it
			for next.StatusCode != http.StatusOK && time.Since(begin) < time.Minute { // each list waits for the slot
				next = list() //nolint:bodyclose // its cleanup closes it
			}
			if next.StatusCode != http.StatusOK {
				t.Errorf("the next list of the sender after a minute: the answer is %s, want %d", next.Status, http.StatusOK)
			}
		})
	}
}
