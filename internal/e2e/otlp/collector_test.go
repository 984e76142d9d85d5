package otlp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

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
  pipelines: {logs: {receivers: [otlp], exporters: [file]}}
`

// collector is an OpenTelemetry Collector that can be killed and started again.
type collector struct {
	*testing.T
	address, config, file string
	process               *process.Process
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	dir := t.TempDir()
	c := &collector{T: t, config: filepath.Join(dir, "config.yaml"), file: filepath.Join(dir, "logs.json")}
	var err error
	if c.address, err = process.FreeAddress(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.config, fmt.Appendf(nil, collectorConfig, c.address, c.file), 0o600); err != nil {
		t.Fatal(err)
	}
	c.start()
	t.Cleanup(func() {
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
	if c.process, err = process.Start(binaries.collector, nil, []string{"--config=" + c.config}); err != nil {
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
	Attributes                         []attribute
}

type attribute struct {
	Key   string
	Value value
}

type value struct{ StringValue, IntValue string }

// attribute is the value of an attribute; empty for none.
func (r *record) attribute(key string) string {
	for _, a := range r.Attributes {
		if a.Key == key {
			return a.Value.StringValue + a.Value.IntValue
		}
	}
	return ""
}

// records returns the received records in their order. A line without its end was written when the collector was killed.
func (c *collector) records() (all []record) {
	c.Helper()
	text, err := os.ReadFile(c.file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		c.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var request struct {
			ResourceLogs []struct {
				ScopeLogs []struct{ LogRecords []record }
			}
		}
		if err := json.Unmarshal(line, &request); err != nil {
			c.Logf("a line that the killed collector did not finish: %v", err)
			continue
		}
		for _, resource := range request.ResourceLogs {
			for _, scope := range resource.ScopeLogs {
				all = append(all, scope.LogRecords...)
			}
		}
	}
	return all
}
