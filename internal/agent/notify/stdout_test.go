package notify

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

func TestStdoutSender_Lines(t *testing.T) {
	pod := target.Ref{Kind: "Pod", Namespace: "app", Name: "web-7887448d46-2tsj5"}
	op := observe.Operation{Object: target.Identity{Ref: pod}}
	deleted := op
	deleted.Deleted = true
	known := outbox.Receipt{Accepted: true}
	tests := []struct {
		reason string
		item   outbox.Item
		want   string
	}{
		{"the first report of an object", outbox.Item{Report: op}, "Pod created: web-7887448d46-2tsj5"},
		{"a later one", outbox.Item{Report: op, Receipt: known}, "Pod updated: web-7887448d46-2tsj5"},
		{"the last one", outbox.Item{Report: deleted, Receipt: known}, "Pod deleted: web-7887448d46-2tsj5"},
		{"the deletion of an unreported object", outbox.Item{Report: deleted}, "Pod deleted: web-7887448d46-2tsj5"},
		{
			"an Event",
			outbox.Item{Report: observe.Event{Type: "Warning", Reason: "BackOff", Involved: pod, Message: "Back-off"}},
			"Event Warning BackOff of Pod app/web-7887448d46-2tsj5: Back-off",
		},
		{
			"a message of several lines, with control sequences, is one line",
			outbox.Item{Report: observe.Event{Type: "Warning", Reason: "Unhealthy", Involved: pod, Message: "a\nb\r\x1b[31mc"}},
			"Event Warning Unhealthy of Pod app/web-7887448d46-2tsj5: a b  [31mc",
		},
		{"a status", outbox.Item{Report: status(877588458330128385, "Healthy")}, "WorkloadInstance 877588458330128385: Healthy"},
	}
	for _, tt := range tests {
		var out bytes.Buffer
		if receipt, err := NewStdoutSender(&out).Send(t.Context(), tt.item); err != nil || receipt != (outbox.Receipt{}) {
			t.Errorf("%s: %v, %v", tt.reason, receipt, err)
		}
		if got := out.String(); got != tt.want+"\n" {
			t.Errorf("%s:\ngot  %q\nwant %q", tt.reason, got, tt.want)
		}
	}
}

func TestStdoutSender_ConcurrentLinesAreWhole(t *testing.T) {
	var out bytes.Buffer
	b := newBench(DefaultConfig(), NewStdoutSender(&out))
	for id := range int64(100) {
		b.box.Offer(status(id, "Healthy"))
	}
	b.flush(t)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for _, line := range lines {
		if !strings.HasPrefix(line, "WorkloadInstance ") || !strings.HasSuffix(line, ": Healthy") || len(lines) != 100 {
			t.Fatalf("%d lines, one is %q", len(lines), line)
		}
	}
}

type brokenPipe struct{ left int }

func (p *brokenPipe) Write(b []byte) (int, error) {
	if p.left > 0 {
		p.left--
		return 0, errors.New("broken pipe")
	}
	return len(b), nil
}

func TestStdoutSender_FailedWrite_IsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(DefaultConfig(), NewStdoutSender(&brokenPipe{left: 3}))
		b.flush(t, status(1, "Healthy"))
		if got := b.metric(t, "threeport_agent_reports_total", "status", "retried"); got != 3 {
			t.Errorf("%v were retried", got)
		}
	})
}

func TestV0Sender_UnknownReport_IsAnError(t *testing.T) {
	if _, err := NewV0Sender(nil).Send(context.Background(), outbox.Item{Report: odd{}}); err == nil {
		t.Error("it passed")
	}
	if got := line(outbox.Item{Report: odd{}}); got != "status of  0" {
		t.Errorf("got %q", got)
	}
}

// odd is a report of an unknown type.
type odd struct{ observe.Status }
