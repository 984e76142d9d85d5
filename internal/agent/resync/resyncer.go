package resync

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// Cluster is the state of the cluster. *reporter.Reporter is one.
type Cluster interface {
	// Instances returns the instances that are declared.
	Instances() []target.Instance
	// DesiredState returns what the control plane should have of an instance; false while not all of it has been listed. After readUntil,
	// unless it is zero, it starts no further read of the API server and returns false. The next call goes on with the other objects.
	DesiredState(ctx context.Context, instance target.Instance, readUntil time.Time) (observe.DesiredState, bool, error)
	// DetectStalls compares the informers' caches with the API server, and returns how many informers it restarted.
	DetectStalls(ctx context.Context) (stalled int, err error)
}

// Declarations says when the declared workloads are known. *controller.Reconciler is one.
type Declarations interface {
	// Ready returns nil when all declared workloads are tracked.
	Ready(ctx context.Context) error
}

// Outbox delivers the repairs. *outbox.Outbox is one.
type Outbox interface {
	Seed(instance target.Instance, known []outbox.Known, missed []observe.Operation, live []observe.Event)
	State(r observe.Report) outbox.KeyState
	Resend(r observe.Report, receipt outbox.Receipt) bool
	Offer(r observe.Report)
}

// API reads the rows of the control plane. *threeport.Client is one.
type API interface {
	ListWorkloadEvents(ctx context.Context, filter threeport.EventFilter, page, size int) ([]threeport.WorkloadEvent, int64, error)
	GetWorkloadResourceInstance(ctx context.Context, id int64) (threeport.WorkloadResourceInstance, error)
	GetWorkloadInstance(ctx context.Context, id int64) (threeport.WorkloadInstance, error)
	GetHelmWorkloadInstance(ctx context.Context, id int64) (threeport.HelmWorkloadInstance, error)
	EventsKeptAfter(ctx context.Context, instance threeport.Instance) (time.Time, error)
}

// Config sets how often rows are compared.
type Config struct {
	// Interval is the time between two comparisons of a workload, ±10 %; 0 for none. Initial syncs happen in any case.
	Interval time.Duration
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config { return Config{Interval: 10 * time.Minute} }

// Validate returns an error that names the wrong field and the accepted values.
func (c Config) Validate() error {
	if c.Interval < 0 {
		return fmt.Errorf("resync interval is %s: give a duration above 0, such as 10m, or 0 for never", c.Interval)
	}
	return nil
}

// Resyncer makes the initial sync of each workload, and later compares it with the cluster periodically. Its methods are
// safe for concurrent use.
type Resyncer struct {
	config       Config
	cluster      Cluster
	declarations Declarations
	outbox       Outbox
	api          API
	metrics      *Metrics
	log          logr.Logger

	mu         sync.Mutex
	lastState  map[target.Instance]observe.DesiredState // If the initial sync failed or is incomplete.
	incomplete map[target.Instance]*remoteState         // Between two turns.
	forgetAt   int                                      // The number of states at which some are dropped.
	ended      bool                                     // The informers have ended.
	endRound   func()                                   // Ends the round that is under way.
}

// New returns a resyncer. It compares workloads while it is run.
func New(
	config Config, cluster Cluster, declarations Declarations, box Outbox, api API, metrics *Metrics, log logr.Logger,
) *Resyncer {
	return &Resyncer{
		config: config, cluster: cluster, declarations: declarations, outbox: box, api: api, metrics: metrics, log: log,
		lastState:  map[target.Instance]observe.DesiredState{},
		incomplete: map[target.Instance]*remoteState{},
		endRound:   func() {},
	}
}

// Run compares workloads until the context ends, at the same time as the informers. Initial syncs that failed
// before can still be repeated.
func (r *Resyncer) Run(ctx context.Context) {
	for ctx.Err() == nil {
		r.roundOf(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
}

// roundOf makes one round, or waits if the interval is 0. It ends early when the interval changes.
func (r *Resyncer) roundOf(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.mu.Lock()
	interval := r.config.Interval
	r.endRound = cancel
	r.mu.Unlock()
	if interval > 0 {
		r.round(ctx, interval)
	} else {
		<-ctx.Done()
	}
}

// SetInterval changes the interval of [Config]. A new round begins, if one is under way.
func (r *Resyncer) SetInterval(interval time.Duration) {
	r.mu.Lock()
	changed, endRound := interval != r.config.Interval, r.endRound
	r.config.Interval = interval
	r.mu.Unlock()
	if changed {
		endRound()
	}
}

// desiredState returns what the control plane should have of an instance; false while not all of it has been listed. An
// instance that is still not declared when all declared ones are tracked was deleted. Its pending reports are sent, and
// nothing more.
func (r *Resyncer) desiredState(
	ctx context.Context, instance target.Instance, readUntil time.Time,
) (observe.DesiredState, bool, error) {
	found, complete, err := r.cluster.DesiredState(ctx, instance, readUntil)
	if err == nil && !complete && !slices.Contains(r.cluster.Instances(), instance) && r.declarations.Ready(ctx) == nil {
		return observe.DesiredState{}, true, nil
	}
	return found, complete, err
}

// sleep returns false if the context ended before the time was over.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}
