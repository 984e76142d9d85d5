package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/threeport/threeport-agent/internal/agent/notify"
	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// slow is a sender whose requests take a second.
type slow struct{}

func (slow) Send(ctx context.Context, _ outbox.Item) (outbox.Receipt, error) {
	select {
	case <-time.After(time.Second):
		return outbox.Receipt{}, nil
	case <-ctx.Done():
		return outbox.Receipt{}, ctx.Err()
	}
}

// The manager cancels its parts also if one of them has failed. Only a replica of several may have lost the lease then.
func TestPipeline_LeadingEndsBeforeTheProcess_FlushesWithoutElection(t *testing.T) {
	for leaderElect, left := range map[bool]int{false: 0, true: 1} {
		synctest.Test(t, func(t *testing.T) {
			box := outbox.New(outbox.DefaultConfig(), nil)
			p := pipeline{leaderElect: leaderElect, notifier: notify.New(
				notify.DefaultConfig(), box, notify.OneByOne(slow{}), nil, notify.NewMetrics(prometheus.NewRegistry(), box), logr.Discard())}
			leading, fail := context.WithCancel(t.Context())
			err := p.deliverBeside(leading, t.Context(), func(leading context.Context) {
				box.Offer(observe.Status{Workload: target.Instance{Type: target.WorkloadInstance, ID: 1}, Status: "Healthy"})
				fail()
				<-leading.Done()
			})
			if got := box.Pending(); got != left || err != nil {
				t.Errorf("with the election %t, %d reports are left, want %d: %v", leaderElect, got, left, err)
			}
		})
	}
}
