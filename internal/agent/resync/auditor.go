package resync

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// Cluster is what the watch knows. *watch.Watcher is one.
type Cluster interface {
	// Instances returns the instances that are declared.
	Instances() []target.Instance
	// DesiredState returns what the control plane is to hold of an instance; false while that is not all seen yet.
	DesiredState(ctx context.Context, instance target.Instance) (observe.DesiredState, bool, error)
	// DetectStalls compares the caches with the API server, and returns how many lagged and were restarted.
	DetectStalls(ctx context.Context) (stalled int, err error)
}

// Outbox is what delivers. *outbox.Outbox is one.
type Outbox interface {
	Seed(instance target.Instance, known []outbox.Known, missed []observe.Operation, live []observe.Event)
	State(key observe.Key) outbox.Snapshot
	Resend(r observe.Report, receipt outbox.Receipt) bool
	Offer(r observe.Report)
	Forget(key observe.Key)
}

// API is what is read of the control-plane API. *controlplane.Client is one.
type API interface {
	ListWorkloadEvents(ctx context.Context, filter threeport.EventFilter, page, size int) ([]threeport.WorkloadEvent, int64, error)
	GetWorkloadResourceInstance(ctx context.Context, id int64) (threeport.WorkloadResourceInstance, error)
	GetWorkloadInstance(ctx context.Context, id int64) (threeport.WorkloadInstance, error)
	GetHelmWorkloadInstance(ctx context.Context, id int64) (threeport.HelmWorkloadInstance, error)
	EventsKeptAfter(ctx context.Context, instance threeport.Instance) (time.Time, error)
}

// Config sets when the control plane is read.
type Config struct {
	// Interval is the time from one audit of a workload to the next, about; 0 for no audits. Adoption is not concerned.
	Interval time.Duration
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config { return Config{Interval: 10 * time.Minute} }

// Validate names the field that is wrong and what it accepts.
func (c Config) Validate() error {
	if c.Interval < 0 {
		return fmt.Errorf("resync interval is %s: give a duration above 0, such as 10m, or 0 for no audits", c.Interval)
	}
	return nil
}

// Resyncer adopts workloads and audits them. Its methods are safe for concurrent use.
type Resyncer struct {
	config  Config
	cluster Cluster
	outbox  Outbox
	plane   API
	metrics *Metrics
	log     logr.Logger

	mu    sync.Mutex
	seen  map[target.Instance]observe.DesiredState // of those whose adoption failed
	ended bool                                     // nothing is watched any more
}

// New returns an auditor that does nothing until it is run, or asked to adopt.
func New(config Config, cluster Cluster, box Outbox, plane API, metrics *Metrics, log logr.Logger) *Resyncer {
	return &Resyncer{
		config: config, cluster: cluster, outbox: box, plane: plane, metrics: metrics, log: log,
		seen: map[target.Instance]observe.DesiredState{},
	}
}

// Run audits until the context ends, which is when watching ends too. It returns nil. What was seen by then can still
// be adopted.
func (a *Resyncer) Run(ctx context.Context) error {
	for ctx.Err() == nil && a.config.Interval > 0 {
		a.round(ctx)
	}
	<-ctx.Done()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	return nil
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
