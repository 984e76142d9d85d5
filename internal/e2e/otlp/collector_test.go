package otlp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// collectorConfig has OTLP over HTTP on a loopback address, and a file with a line for each request. The file is written before a request is
// answered. The collector has no metrics of its own, which would need another port.
const collectorConfig = `
receivers: {otlp: {protocols: {http: {endpoint: %q}}}}
exporters: {file: {path: %q}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {%s: {receivers: [otlp], exporters: [file]}}
`

// collector is an OpenTelemetry Collector that can be killed and started again.
type collector struct {
	*testing.T
	address, config, file string
	process               *process.Process
}

// newCollector returns a collector of the logs or the traces. It does not run before start, and ends with the test.
func newCollector(t *testing.T, signal string) *collector {
	t.Helper()
	dir := t.TempDir()
	c := &collector{T: t, config: filepath.Join(dir, "config.yaml"), file: filepath.Join(dir, "received.json")}
	var err error
	if c.address, err = process.FreeAddress(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.config, fmt.Appendf(nil, collectorConfig, c.address, c.file, signal), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if c.process == nil {
			return
		}
		c.process.Kill()
		if t.Failed() {
			t.Logf("the end of the log of the collector:\n%s", world.End(c.process.Output(), 4<<10))
		}
	})
	return c
}

// start starts the collector, also after its end.
func (c *collector) start() {
	c.Helper()
	var err error
	if c.process, err = process.Start(shared.collector, nil, []string{"--config=" + c.config}); err != nil {
		c.Fatal(err)
	}
	if _, err := c.process.WaitFor(c.Context(), "Everything is ready"); err != nil {
		c.Fatal(err)
	}
}

// record is a log record that the collector received.
type record struct {
	EventName                          string
	TimeUnixNano, ObservedTimeUnixNano string
	SeverityText                       string
	Body                               value
	Attributes                         attributes
}

type value struct{ StringValue, IntValue string }

type attributes []struct {
	Key   string
	Value value
}

// get returns the value of an attribute; empty for none.
func (all attributes) get(key string) string {
	for _, a := range all {
		if a.Key == key {
			return a.Value.StringValue + a.Value.IntValue
		}
	}
	return ""
}

// requests decodes the received requests, each into a new value. A line without its end was written when the collector was killed.
func requests[T any](c *collector) (all []T) {
	c.Helper()
	text, err := os.ReadFile(c.file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		c.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var request T
		if err := json.Unmarshal(line, &request); err != nil {
			c.Logf("a line that the killed collector did not finish: %v", err)
			continue
		}
		all = append(all, request)
	}
	return all
}

// records returns the received records in their order.
func (c *collector) records() (all []record) {
	c.Helper()
	type request struct {
		ResourceLogs []struct {
			ScopeLogs []struct{ LogRecords []record }
		}
	}
	for _, r := range requests[request](c) {
		for _, resource := range r.ResourceLogs {
			for _, scope := range resource.ScopeLogs {
				all = append(all, scope.LogRecords...)
			}
		}
	}
	return all
}

// span is a span that the collector received, with the service that sent it.
type span struct {
	Name, TraceID, SpanID, ParentSpanID string
	StartTimeUnixNano, EndTimeUnixNano  string
	Attributes                          attributes

	resource attributes
}

func (s *span) begin() time.Time { return timeOf(s.StartTimeUnixNano) }
func (s *span) end() time.Time   { return timeOf(s.EndTimeUnixNano) }

func timeOf(nanos string) time.Time {
	n, _ := strconv.ParseInt(nanos, 10, 64) // a time of 1970 is not in order
	return time.Unix(0, n)
}

// spans returns all received spans.
func (c *collector) spans() (all []span) {
	c.Helper()
	type request struct {
		ResourceSpans []struct {
			Resource   struct{ Attributes attributes }
			ScopeSpans []struct{ Spans []span }
		}
	}
	for _, r := range requests[request](c) {
		for _, resource := range r.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, s := range scope.Spans {
					s.resource = resource.Resource.Attributes
					all = append(all, s)
				}
			}
		}
	}
	return all
}
