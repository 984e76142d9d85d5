package tracing

import (
	"context"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/otel/attribute"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/threeport/threeport-agent/internal/otlp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var service = Service{Name: "threeport-agent", Version: "v1", Cluster: "home", Metrics: "threeport_agent"}

// receiver is an OTLP receiver.
type receiver struct {
	mu       sync.Mutex
	requests []*http.Request
	spans    []*tracepb.ResourceSpans
	code     int
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	var data tracepb.TracesData
	r.mu.Lock()
	defer r.mu.Unlock()
	if proto.Unmarshal(body, &data) != nil || req.Header.Get("Content-Type") != "application/x-protobuf" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.requests, r.spans = append(r.requests, req), append(r.spans, data.ResourceSpans...)
	w.WriteHeader(r.code)
}

func open(t *testing.T, config otlp.Config, log logr.Logger) *Provider {
	t.Helper()
	p, err := Open(t.Context(), config, service, log)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// end makes so many spans.
func end(p *Provider, spans int) {
	for range spans {
		_, span := p.Tracer().Start(context.Background(), "observe")
		span.SetAttributes(attribute.String("k8s.object.name", strings.Repeat("x", 1000)))
		span.End()
	}
}

func expectSpans(t *testing.T, p *Provider, want map[string]float64) {
	t.Helper()
	for _, result := range []string{resultExported, resultFailed, resultDropped} {
		if got := testutil.ToFloat64(p.queue.spans.WithLabelValues(result)); got != want[result] {
			t.Errorf("%v spans are %s, want %v", got, result, want[result])
		}
	}
}

func TestOpen_WithoutEndpoint_MakesNoSpans(t *testing.T) {
	p := open(t, otlp.Config{HeadersFile: "missing"}, logr.Discard())
	if p != nil || p.Tracer() != nil || p.Collectors() != nil {
		t.Errorf("the provider is %v, want none", p)
	}
	p.Shutdown(t.Context())
}

func TestProvider_Shutdown_ExportsWhatWaits(t *testing.T) {
	to := &receiver{code: http.StatusOK}
	server := httptest.NewTLSServer(to)
	defer server.Close()
	dir := t.TempDir()
	ca, headers := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "headers")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for file, content := range map[string]string{ca: string(text), headers: "Authorization: Bearer one\n\nX-Team:shop\n"} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := open(t, otlp.Config{Endpoint: server.URL, CAFile: ca, HeadersFile: headers}, logr.Discard())
	end(p, 600)
	p.Shutdown(t.Context())
	expectSpans(t, p, map[string]float64{resultExported: 600})
	if len(to.requests) < 2 { // two batches
		t.Fatalf("%d requests, want 2", len(to.requests))
	}
	first := to.requests[0]
	if first.URL.Path != "/v1/traces" || first.Header.Get("Authorization") != "Bearer one" || first.Header.Get("X-Team") != "shop" {
		t.Errorf("the request is %s %v, want /v1/traces with the headers of the file", first.URL, first.Header)
	}
	resource := to.spans[0].Resource.String()
	for _, want := range []string{"service.name", "threeport-agent", "service.version", "k8s.cluster.name", "home"} {
		if !strings.Contains(resource, want) {
			t.Errorf("the resource is %s, want %s", resource, want)
		}
	}
	span := to.spans[0].ScopeSpans[0].Spans[0]
	if got := span.Attributes[0].Value.GetStringValue(); span.Name != "observe" || len(got) != maxAttribute {
		t.Errorf("the span is %s with an attribute of %d bytes, want observe with %d", span.Name, len(got), maxAttribute)
	}
}

// A collector that does not answer costs its spans only: each is counted, and the log has one line.
func TestQueue_FailingCollector_DropsAndCounts(t *testing.T) {
	for _, tc := range []struct {
		reason string
		serve  bool
		code   int
	}{
		{reason: "it is down"},
		{reason: "it refuses", serve: true, code: http.StatusServiceUnavailable},
		{reason: "it redirects, which would give the headers to another host", serve: true, code: http.StatusTemporaryRedirect},
	} {
		to := &receiver{code: tc.code}
		server := httptest.NewServer(to)
		if !tc.serve {
			server.Close()
		}
		var logs []string
		log := funcr.New(func(_, line string) { logs = append(logs, line) }, funcr.Options{}) // called by the queue only, until Shutdown returns
		p := open(t, otlp.Config{Endpoint: server.URL}, log)
		end(p, maxQueue+100) // more than wait, unless an export is due meanwhile
		p.Shutdown(t.Context())
		server.Close()
		failed := testutil.ToFloat64(p.queue.spans.WithLabelValues(resultFailed))
		dropped := testutil.ToFloat64(p.queue.spans.WithLabelValues(resultDropped))
		if failed < 1 || dropped < 100 || failed+dropped != maxQueue+100 {
			t.Errorf("%s: %v spans failed and %v were dropped, want %d in all", tc.reason, failed, dropped, maxQueue+100)
		}
		if len(logs) != 1 || !strings.Contains(logs[0], "The export of traces fails") {
			t.Errorf("%s: the log is %q, want one line", tc.reason, logs)
		}
	}
}

// A collector that accepts connections and does not answer delays the end of a program by seconds only.
func TestProvider_Shutdown_IsBounded(t *testing.T) {
	gone := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-gone }))
	defer server.Close()
	defer close(gone)
	p := open(t, otlp.Config{Endpoint: server.URL}, logr.Discard())
	end(p, 1)
	begin := time.Now()
	p.Shutdown(t.Context())
	if took := time.Since(begin); took > exportTimeout/2 {
		t.Errorf("Shutdown took %s, want about %s", took, shutdownTimeout)
	}
	expectSpans(t, p, map[string]float64{resultFailed: 1})
}

func TestQueue_RecoveredCollector_GetsLaterSpans(t *testing.T) {
	to := &receiver{code: http.StatusServiceUnavailable}
	server := httptest.NewServer(to)
	defer server.Close()
	logs := make(chan string, 10)
	p := open(t, otlp.Config{Endpoint: server.URL}, funcr.New(func(_, line string) { logs <- line }, funcr.Options{}))
	end(p, 1)
	<-logs // the failure
	to.mu.Lock()
	to.code = http.StatusOK
	to.mu.Unlock()
	end(p, 2)
	if line := <-logs; !strings.Contains(line, "succeeds again") {
		t.Errorf("the second line is %q, want the recovery", line)
	}
	p.Shutdown(t.Context())
	expectSpans(t, p, map[string]float64{resultFailed: 1, resultExported: 2})
}
