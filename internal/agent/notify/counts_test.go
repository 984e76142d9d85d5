package notify

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// lastStatus returns the status in the last set that had one.
func (m *model) lastStatus() (last threeport.StatusReport) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, set := range m.sets {
		for _, r := range set.Reports {
			if r.Status != nil {
				last = *r.Status
			}
		}
	}
	return last
}

func TestNegotiatingSender_DeliveryCountsChange_SendsStatusAgain(t *testing.T) {
	m := newModel(t)
	m.verdict = func(r threeport.Report) threeport.ReportAnswer {
		if r.Event != nil && strings.HasPrefix(r.Event.UID, "bad") {
			return threeport.ReportAnswer{Outcome: threeport.OutcomeRejected, Problem: &threeport.ReportProblem{Code: threeport.ProblemInvalid, Detail: "no"}}
		}
		return threeport.ReportAnswer{}
	}
	b := newNegotiationBench(t, m, nil)
	untilRejected := func(want int64) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); m.lastStatus().Rejected != want; <-time.After(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("the control plane has the status %+v, want %d rejected", m.lastStatus(), want)
			}
		}
	}
	status := observe.Status{Workload: shop, Status: "Down", Reason: "Absent", Cause: "because"}
	b.run(func() {
		b.untilChanged()
		b.offer(eventAt("bad 1", "1"))
		b.untilDelivered()
		b.offer(status)
		untilRejected(1) // with the first status
		b.untilDelivered()
		b.offer(eventAt("bad 2", "1"))
		untilRejected(2) // without another status
		b.untilDelivered()
		b.box.RetryRejected(shop)
		m.mu.Lock()
		m.verdict = nil
		m.mu.Unlock()
		b.box.RetryRejected(shop)
		untilRejected(0)
	})
	if got := m.lastStatus(); got.Status != "Down" || got.Reason != "Absent" || got.Cause != "because" {
		t.Errorf("the control plane has the status %+v, want it unchanged except for the counts", got)
	}
}

func TestNegotiatingSender_EventsDropped_SendsStatusAgain(t *testing.T) {
	m := newModel(t)
	b := newBoundedNegotiationBench(t, m, nil, 16<<10)
	offered := 0
	drop := func() {
		m.mu.Lock() // the control plane answers nothing, so the Events wait
		defer m.mu.Unlock()
		for before := b.box.Dropped(); b.box.Dropped() == before; offered++ {
			b.offer(eventAt(fmt.Sprint("e", offered), "1"))
		}
	}
	b.run(func() {
		b.untilChanged()
		b.offer(observe.Status{Workload: shop, Status: "Down", Reason: "Absent", Cause: "because"})
		b.untilDelivered()
		if got := m.lastStatus(); got.Status != "Down" || got.Dropped != 0 {
			t.Errorf("the control plane has the status %+v, want Down with nothing dropped", got)
		}
		for range 2 {
			drop()
			for deadline := time.Now().Add(20 * time.Second); m.lastStatus().Dropped != b.box.Dropped(); <-time.After(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("the control plane has the status %+v, want %d dropped", m.lastStatus(), b.box.Dropped())
				}
			}
		}
	})
	if got := m.lastStatus(); got.Status != "Down" || got.Reason != "Absent" || got.Cause != "because" {
		t.Errorf("the control plane has the status %+v, want it unchanged except for the counts", got)
	}
}

func TestSetSender_Status_HasDeliveryCounts(t *testing.T) {
	m := newModel(t) // outside of the bubble, in which a listener would stop the time
	synctest.Test(t, func(t *testing.T) {
		b := newBoundedNegotiationBench(t, m, nil, 16<<10)
		b.box.SetProtocol(ProtocolReportSets)
		take := func() outbox.Item {
			t.Helper()
			items, err := b.box.NextBatch(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			return items[0]
		}
		b.offer(operationAt(7, "rejected", "1"))
		b.box.Reject(take(), errBad)
		for i := range 10 { // more than the bound
			b.offer(eventAt(fmt.Sprint("e", i), "1"))
		}
		want := outbox.DeliveryCounts{Pending: int64(b.box.Pending()), Rejected: 1, Dropped: b.box.Dropped()}
		if want.Pending == 0 || want.Dropped == 0 {
			t.Fatalf("the outbox has the counts %+v, want none to be zero", want)
		}
		time.Sleep(6 * time.Second) // then they count as pending
		b.offer(status(shop.ID, "Down"))
		item := take()
		for item.Report != status(shop.ID, "Down") {
			item = take()
		}
		b.sender.sets.configure(threeport.ReportSetVersions{})
		if results := b.sender.sets.Send(t.Context(), []outbox.Item{item}); results[0].Err != nil {
			t.Fatal(results[0].Err)
		}
		sent := m.lastStatus()
		if got := (outbox.DeliveryCounts{Pending: sent.Pending, Rejected: sent.Rejected, Dropped: sent.Dropped}); got != want {
			t.Errorf("the control plane has the counts %+v, want %+v", got, want)
		}
	})
}

func TestDeliveryCounts_Refresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := outbox.New(outbox.DefaultConfig(), nil)
		counts := newDeliveryCounts(box)
		status := observe.Status{Workload: shop, Status: "Healthy"}
		take := func() outbox.Item {
			t.Helper()
			items, err := box.NextBatch(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			return items[0]
		}
		box.Offer(status)
		box.Ack(take(), outbox.Receipt{})
		counts.delivered(status, outbox.DeliveryCounts{})
		counts.refresh()
		if got := box.Pending(); got != 0 {
			t.Errorf("equal counts: %d reports are pending, want none", got)
		}
		box.Offer(eventAt("a", "1"))
		time.Sleep(6 * time.Second) // then it counts as pending
		event := take()
		counts.refresh()
		item := take()
		if item.Report != status {
			t.Errorf("other counts: sent again is %v, want the status", item.Report)
		}
		counts.refresh() // while the status is out
		box.Ack(item, outbox.Receipt{})
		counts.delivered(status, box.DeliveryCounts(shop))
		counts.refresh()
		if got := box.Pending(); got != 1 {
			t.Errorf("equal counts: %d reports are pending, want the Event", got)
		}
		box.Ack(event, outbox.Receipt{})
		box.ForgetExcept(observe.SubjectOf(status))
		counts.refresh()
		if len(counts.sent) != 0 {
			t.Errorf("a forgotten status is kept: %+v", counts.sent)
		}
	})
}
