// Package leader elects one of several replicas, and reports to a replica whether it may act as the leader. Its heartbeat shows
// the readers of statuses that the agent reports.
package leader

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/leaderelection"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// The times of the leader election. Another replica takes over leaseDuration after the last renewal. A leader stops sending
// renewDeadline after its last renewal, so that requests under way arrive before that.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	renewPeriod   = 2 * time.Second
)

// errNotLeading is the error of a request that is not made. The process was paused, or cannot reach the API server.
var errNotLeading = errors.New("the leader's lease was not renewed for too long: another replica may lead")

// Lease is the leader's lease. It has the time until which this process may act as the leader, even if the election does not
// notice in time that the lease was lost.
type Lease struct {
	resourcelock.Interface

	mu    sync.Mutex
	until time.Time
}

// NewLease returns the lease in a namespace; empty for that of the pod.
func NewLease(config *rest.Config, namespace string) (*Lease, error) {
	own := rest.CopyConfig(config) // NewResourceLock sets its timeout, which would end the lists and watches of informers
	lock, err := leaderelection.NewResourceLock(own, silent{}, leaderelection.Options{
		LeaderElection:          true,
		LeaderElectionID:        "threeport-agent.control-plane.threeport.io",
		LeaderElectionNamespace: namespace,
		RenewDeadline:           renewDeadline,
	})
	if err != nil {
		return nil, fmt.Errorf("set up the election of a leader (--leader-election-namespace): %w", err)
	}
	return &Lease{Interface: lock}, nil
}

// Configure makes a manager elect a leader with the lease.
func (l *Lease) Configure(o *ctrl.Options) {
	o.LeaderElection, o.LeaderElectionResourceLockInterface = true, l
	o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = new(leaseDuration), new(renewDeadline), new(renewPeriod)
	// The process ends right after the manager, so the next leader need not wait for the lease to expire.
	o.LeaderElectionReleaseOnCancel = true
}

// Create makes the lease.
func (l *Lease) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.write(r, func() error { return l.Interface.Create(ctx, r) })
}

// Update takes, renews or releases it.
func (l *Lease) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.write(r, func() error { return l.Interface.Update(ctx, r) })
}

func (l *Lease) write(r resourcelock.LeaderElectionRecord, write func() error) error {
	began := time.Now() // before other replicas can see the renewal
	err := write()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case r.HolderIdentity != l.Identity():
		l.until = time.Time{}
	case err == nil:
		l.until = began.Add(renewDeadline)
	}
	return err
}

// Held returns an error if another replica may lead.
func (l *Lease) Held() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Now().Before(l.until) {
		return nil
	}
	return errNotLeading
}

// silent records no Events about the lease. The lease itself has its holder.
type silent struct{}

func (silent) GetEventRecorderFor(string) record.EventRecorder { return nil }

func (silent) GetEventRecorder(string) recorder.EventRecorder { return nil }
