package notify

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/threeport"
)

func TestMetrics_CountReportsByKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(DefaultConfig(), &script{answer: func(_ context.Context, item outbox.Item) (outbox.Receipt, error) {
			time.Sleep(2 * time.Second)
			switch r := item.Report.(type) {
			case observe.Status:
				if item.Attempt < 3 {
					return outbox.Receipt{}, &threeport.Error{StatusCode: 429, RetryAfter: 5 * time.Second}
				}
			case observe.Event:
				if r.Reason == "Bad" {
					return outbox.Receipt{}, errBad
				}
			}
			return outbox.Receipt{}, nil
		}})
		b.box.Offer(status(1, "Healthy"))
		b.box.Offer(observe.Operation{})
		b.box.Offer(observe.Event{UID: "a", Reason: "Bad"})
		b.box.Offer(observe.Event{UID: "b"})
		if got := b.metric(t, "threeport_agent_reports_pending"); got != 4 {
			t.Errorf("%v are pending", got)
		}
		b.flush(t)
		for _, want := range []struct {
			kind, result string
			count        float64
		}{
			{"status", "accepted", 1},
			{"status", "retried", 2},
			{"status", "rejected", 0},
			{"operation", "accepted", 1},
			{"event", "accepted", 1},
			{"event", "rejected", 1},
		} {
			if got := b.metric(t, "threeport_agent_reports_total", want.kind, want.result); got != want.count {
				t.Errorf("%s %s: %v, want %v", want.kind, want.result, got, want.count)
			}
		}
		for kind, seconds := range map[string]float64{"status": 16, "operation": 2, "event": 2} {
			if got := b.metric(t, "threeport_agent_report_delay_seconds", kind); got != seconds {
				t.Errorf("%s took %v s, want %v", kind, got, seconds)
			}
		}
		if got := b.metric(t, "threeport_agent_reports_pending"); got != 0 {
			t.Errorf("%v are pending in the end", got)
		}
	})
}
