package attacks

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// maxDefinitionDelay bounds the delay of another cluster's definition. One hostile definition took 100 s.
const maxDefinitionDelay = 30 * time.Second

// An agent sends a definition of 1.8 MB with 9,990 Secrets in each other, and annotations in the innermost one.
func TestMemory_AgentNestsObjectsInDefinition(t *testing.T) {
	const depth = 9990
	var inner strings.Builder
	for i := range 22_000 {
		fmt.Fprintf(&inner, `"h%d":{"metadata":{"annotations":{"x":"y"}}},`, i)
	}
	hostile := `{"RuntimeDefinition":` + strings.Repeat(`{"kind":"Secret","apiVersion":"v1","metadata":{"annotations":{"a":"b"}},"a":`, depth) +
		"{" + strings.TrimSuffix(inner.String(), ",") + strings.Repeat("}", depth+2)
	usual := `{"RuntimeDefinition":{"kind":"ConfigMap","apiVersion":"v1","data":{"a":"` + strings.Repeat("x", 70_000) + `"}}}`
	onDatabases(t, func(t *testing.T, address string) {
		t.Helper()
		a := newAPI(t, address)
		a.start()
		patch := func(ctx context.Context, bearer string, resource int64, body string) (int, error) {
			path := fmt.Sprintf("/v0/workload-resource-instances/%d", resource)
			code, _, err := a.request(ctx, bearer, http.MethodPatch, path, strings.NewReader(body))
			return code, err
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var attack sync.WaitGroup
		for range 2 {
			attack.Go(func() {
				for ctx.Err() == nil {
					if code, err := patch(ctx, a.agent, a.own.resource, hostile); err == nil && code != http.StatusOK && code != http.StatusServiceUnavailable && code != http.StatusTooManyRequests {
						t.Errorf("a hostile definition: the answer is %d, want 200, 429 or 503", code)
						return
					}
				}
			})
		}
		for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
			begin := time.Now()
			ctx, cancel := context.WithTimeout(ctx, maxDefinitionDelay)
			code, err := patch(ctx, a.honest, a.honestly.resource, usual)
			cancel()
			if err != nil || code != http.StatusOK {
				t.Fatalf("a definition of another cluster after %s: %d, %v, want %d", time.Since(begin), code, err, http.StatusOK)
			}
		}
		cancel()
		attack.Wait()
		a.expectAlive()
	})
}
