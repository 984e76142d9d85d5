package traces

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// collectorConfig has OTLP over HTTP on a loopback address, and a file with a line for each request. The collector has no metrics of its
// own, which would need another port.
const collectorConfig = `
receivers: {otlp: {protocols: {http: {endpoint: %q}}}}
exporters: {file: {path: %q}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [otlp], exporters: [file]}}
`

// collector is an OpenTelemetry Collector, which does not run before start.
type collector struct{ address, config, file string }

func newCollector(w *world.World) *collector {
	w.Helper()
	dir := w.TempDir()
	c := &collector{address: w.FreeAddress(), config: filepath.Join(dir, "config.yaml"), file: filepath.Join(dir, "traces.json")}
	w.Must(os.WriteFile(c.config, fmt.Appendf(nil, collectorConfig, c.address, c.file), 0o600))
	return c
}

// start starts the collector, and kills it at the end of the test.
func (c *collector) start(w *world.World) {
	w.Helper()
	p, err := process.Start(shared.collector, nil, []string{"--config=" + c.config})
	w.Must(err)
	w.Cleanup(func() {
		p.Kill()
		if w.Failed() {
			w.Logf("the end of the log of the collector:\n%s", world.End(p.Output(), 4<<10))
		}
	})
	_, err = p.WaitFor(w.Ctx, "Everything is ready")
	w.Must(err)
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

type attributes []struct {
	Key   string
	Value struct{ StringValue, IntValue string }
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

// spans returns all received spans.
func (c *collector) spans() (all []span, err error) {
	text, err := os.ReadFile(c.file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		var request struct {
			ResourceSpans []struct {
				Resource   struct{ Attributes attributes }
				ScopeSpans []struct{ Spans []span }
			}
		}
		if err := json.Unmarshal(line, &request); err != nil {
			return nil, err
		}
		for _, resource := range request.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, s := range scope.Spans {
					s.resource = resource.Resource.Attributes
					all = append(all, s)
				}
			}
		}
	}
	return all, nil
}
