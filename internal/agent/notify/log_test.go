package notify

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/outbox"
)

func expectLogged(t *testing.T, b *bench, failed, recovered int) {
	t.Helper()
	if b.logged("Delivery fails") != failed || b.logged("Delivery recovered") != recovered {
		t.Errorf("after %s: want %d lines of failure and %d of recovery, got %q", time.Now().Format("15:04:05"), failed, recovered, b.logs)
	}
}

func TestNotifier_Log_OutageIsTwoLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		b := newBench(DefaultConfig(), &script{answer: func(context.Context, outbox.Item) (outbox.Receipt, error) {
			time.Sleep(10 * time.Millisecond)
			if at := time.Since(start); at < 10*time.Minute || at > 15*time.Minute && at < 16*time.Minute {
				return outbox.Receipt{}, errNetwork
			}
			return outbox.Receipt{}, nil
		}})
		stop := b.start(t)
		for id := range int64(50) {
			b.box.Offer(status(id, "Healthy"))
		}
		time.Sleep(5 * time.Minute)
		expectLogged(t, b, 1, 0)
		time.Sleep(10 * time.Minute)
		expectLogged(t, b, 1, 1)
		time.Sleep(time.Second)
		b.box.Offer(status(1, "Down"))
		time.Sleep(10 * time.Minute)
		expectLogged(t, b, 2, 2)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestNotifier_Log_RefusedCredentialsDuringOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		b := newBench(DefaultConfig(), &script{answer: func(context.Context, outbox.Item) (outbox.Receipt, error) {
			switch at := time.Since(start); {
			case at < 5*time.Minute:
				return outbox.Receipt{}, errNetwork
			case at < 20*time.Minute && at.Truncate(time.Minute)%(2*time.Minute) == 0:
				return outbox.Receipt{}, errUnknown
			case at < 20*time.Minute:
				return outbox.Receipt{}, errNetwork
			}
			return outbox.Receipt{}, nil
		}})
		stop := b.start(t)
		for id := range int64(50) {
			b.box.Offer(status(id, "Healthy"))
		}
		time.Sleep(19 * time.Minute)
		if n := b.logged("refuses the agent's credentials"); n != 1 {
			t.Errorf("%d lines say that the credentials are refused, want one: %q", n, b.logs)
		}
		expectLogged(t, b, 1, 0)
		time.Sleep(20 * time.Minute)
		expectLogged(t, b, 1, 1)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestNotifier_Log_FailingReportAmongOthersIsOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		healed := time.Now().Add(35 * time.Minute)
		b := newBench(DefaultConfig(), &script{answer: func(_ context.Context, item outbox.Item) (outbox.Receipt, error) {
			if item.Report.Instance() == shop && time.Now().Before(healed) {
				return outbox.Receipt{}, errBusy
			}
			return outbox.Receipt{}, nil
		}})
		stop := b.start(t)
		b.box.Offer(status(1, "Healthy"))
		for id := range int64(200) {
			b.box.Offer(status(id+2, "Healthy"))
			time.Sleep(10 * time.Second)
		}
		if tries := b.metric(t, "threeport_agent_reports_total", "status", "retried"); tries < 20 {
			t.Errorf("the poison was tried %v times only", tries)
		}
		expectLogged(t, b, 1, 0)
		time.Sleep(10 * time.Minute)
		expectLogged(t, b, 1, 1)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestNotifier_Log_CancelledReportCountsAsRecovered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(DefaultConfig(), &script{answer: func(_ context.Context, item outbox.Item) (outbox.Receipt, error) {
			if item.Report.Instance() == shop {
				return outbox.Receipt{}, errBusy
			}
			return outbox.Receipt{}, nil
		}})
		stop := b.start(t)
		b.box.Offer(status(1, "Healthy"))
		time.Sleep(time.Minute)
		b.box.Cancel(status(1, "").Key())
		b.box.Offer(status(2, "Healthy"))
		time.Sleep(time.Minute)
		expectLogged(t, b, 1, 1)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestNotifier_Log_RejectionEndsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(DefaultConfig(), fails(errBusy, errBad))
		b.flush(t, status(1, "Healthy"))
		expectLogged(t, b, 1, 1)
		if b.logged("rejected a report") != 1 {
			t.Errorf("logged %q", b.logs)
		}
	})
}
