package assess

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/health"
)

// Cluster answers which resources and kinds are watched.
type Cluster interface {
	// ResourceStatus returns the state of a listed resource, without its health.
	ResourceStatus(target.Resource) target.ResourceStatus
	// Follows reports whether a kind is watched.
	Follows(schema.GroupKind) bool
}

// Transitions answers when the status of a workload changed.
type Transitions interface {
	// Since returns the time of the last recorded transition of a workload, if the transition was to the given status;
	// else zero.
	Since(workload, status string) time.Time
	// CauseSince returns the recorded time at which the cause of a status became what it is; else zero.
	CauseSince(workload, reason string) time.Time
}

// Config sets how objects are judged and how often their health is reported.
type Config struct {
	// StatusInterval is the minimum time between two statuses of an instance.
	StatusInterval time.Duration
	// Rules are the user's health rules; nil for none.
	Rules health.Rules
	// Now is the clock.
	Now func() time.Time
}

// Assessor judges objects and keeps the verdicts.
type Assessor struct {
	config      Config
	targets     *target.Registry
	cluster     Cluster
	transitions Transitions
	metrics     *Metrics
	log         logr.Logger
	panicLog    rate.Sometimes
	assessments *assessments
	starts      healthStarts

	mu       sync.Mutex
	flapping map[string]*health.Flapping // by workload
	statuses map[target.Instance]lastStatus
	trees    map[target.Instance]*lastTree
}

// panicLogInterval is the minimum time between two log entries about panics. The metric counts all of them.
const panicLogInterval = time.Minute

// New returns an assessor.
func New(config Config, targets *target.Registry, cluster Cluster, transitions Transitions, metrics *Metrics, log logr.Logger) *Assessor {
	return &Assessor{
		config: config, targets: targets, cluster: cluster, transitions: transitions, metrics: metrics,
		log: log, panicLog: rate.Sometimes{Interval: panicLogInterval},
		assessments: newAssessments(),
		starts:      healthStarts{workloads: map[string]workloadStarts{}},
		flapping:    map[string]*health.Flapping{},
		statuses:    map[target.Instance]lastStatus{},
		trees:       map[target.Instance]*lastTree{},
	}
}

// Workloads returns the names of the workloads for which the assessor keeps damping state.
func (a *Assessor) Workloads() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Keys(a.flapping))
}

// ForgetWorkload drops the state of a workload that is no longer declared.
func (a *Assessor) ForgetWorkload(workload string) {
	a.assessments.forget(workload)
	a.starts.forget(workload)
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.flapping, workload)
}

// ForgetInstance drops the state of an instance after its last workload was removed.
func (a *Assessor) ForgetInstance(instance target.Instance) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.statuses, instance)
	delete(a.trees, instance)
}

// Sizes returns how much the assessor holds, for tests that look for leaks.
func (a *Assessor) Sizes() map[string]int {
	assessed := a.assessments.size()
	a.mu.Lock()
	defer a.mu.Unlock()
	return map[string]int{
		"assessed workloads": assessed, "damped workloads": len(a.flapping),
		"last statuses": len(a.statuses), "last trees": len(a.trees),
	}
}
