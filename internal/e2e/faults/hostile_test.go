package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/threeport/threeport-agent/internal/e2e/world"
)

const (
	hostileText   = 15 << 20  // bytes, in each answer
	hostileMemory = 230 << 20 // bytes
)

// A control plane answers each report with a text as long as an answer may be: with the row, or with an error. The agent has the shipped
// GOMEMLIMIT.
func TestControlPlane_LongAnswers_FitMemoryLimit(t *testing.T) {
	for status, answers := range map[int]int64{http.StatusOK: 24, http.StatusBadRequest: 8} { // after some errors, the agent waits
		t.Run(http.StatusText(status), func(t *testing.T) {
			row, cause := strings.Repeat("x", hostileText), ""
			if status != http.StatusOK {
				row, cause = cause, row
			}
			long, err := json.Marshal(map[string]any{
				"Data": []any{map[string]any{"ID": 1, "RuntimeDefinition": row}}, "Status": map[string]any{"code": status, "error": cause},
			})
			if err != nil {
				t.Fatal(err)
			}
			var answered atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				id := path.Base(req.URL.Path)
				switch {
				case strings.Contains(req.URL.Path, "report-sets"):
					w.WriteHeader(http.StatusNotFound)
				case req.Method == http.MethodGet && req.URL.RawQuery == "" && strings.Trim(id, "0123456789") == "":
					_, _ = fmt.Fprintf(w, `{"Data":[{"ID":%s}],"Status":{"code":200}}`, id)
				case req.Method == http.MethodGet:
					_, _ = fmt.Fprint(w, `{"Data":[],"Status":{"code":200}}`)
				default:
					answered.Add(1)
					w.WriteHeader(status)
					_, _ = w.Write(long)
				}
			}))
			t.Cleanup(server.Close)
			w := newWorldToMeasure(t, "--threeport-api-server="+strings.TrimPrefix(server.URL, "http://"))
			var objects []*unstructured.Unstructured
			for i := range 300 {
				objects = append(objects, w.Object(world.ConfigMap(fmt.Sprint("small-", i))))
			}
			w.declareAll(objects)
			w.EventuallyWithin(15*time.Minute, "the agent has many long answers", func() error { // it waits up to 30 s after each
				if got := answered.Load(); got < answers {
					return fmt.Errorf("it has %d", got)
				}
				return nil
			})
			w.expectPeakMemory(hostileMemory)
		})
	}
}
