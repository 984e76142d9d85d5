package leader

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/threeport/threeport-agent/api/v1alpha1"
)

// fakeLeases stores one Lease.
type fakeLeases struct {
	coordinationclient.LeaseInterface

	mu         sync.Mutex
	stored     *coordinationv1.Lease
	err        error // of each request
	notWorking error // of the agent
}

// fail sets the errors.
func (f *fakeLeases) fail(requests, agent error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err, f.notWorking = requests, agent
}

func (f *fakeLeases) working() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.notWorking
}

func (f *fakeLeases) Get(context.Context, string, metav1.GetOptions) (*coordinationv1.Lease, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil && f.stored == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, HeartbeatName)
	}
	return f.stored, f.err
}

func (f *fakeLeases) Create(_ context.Context, lease *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return f.store(lease)
}

func (f *fakeLeases) Update(_ context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return f.store(lease)
}

func (f *fakeLeases) store(lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	f.stored = lease.DeepCopy()
	f.stored.ResourceVersion = "1"
	return f.stored, nil
}

func TestHeartbeat_Run_RenewsWhileTheAgentWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leases := &fakeLeases{}
		var lines atomic.Int64
		log := funcr.New(func(_, line string) {
			lines.Add(1)
			if !strings.Contains(line, HeartbeatName) {
				t.Errorf("logged %s, want the name of the Lease", line)
			}
		}, funcr.Options{})
		h := NewHeartbeat(leases, "pod-1", "v1.2.3", leases.working, log)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); h.Run(ctx) }()
		pass := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		expect := func(reason string, age time.Duration, holder string) {
			t.Helper()
			leases.mu.Lock()
			defer leases.mu.Unlock()
			spec := leases.stored.Spec
			if got := time.Since(spec.RenewTime.Time); got != age || *spec.HolderIdentity != holder || *spec.LeaseDurationSeconds != 30 {
				t.Errorf("%s: the Lease was renewed %s ago by %q, want %s and %q", reason, got, *spec.HolderIdentity, age, holder)
			}
		}
		pass(0)
		expect("at the start", 0, "pod-1")
		expectAcquired := func(reason string, age time.Duration) {
			t.Helper()
			leases.mu.Lock()
			defer leases.mu.Unlock()
			if got := time.Since(leases.stored.Spec.AcquireTime.Time); got != age {
				t.Errorf("%s: the Lease was acquired %s ago, want %s", reason, got, age)
			}
		}
		expectVersion := func(reason, want string) {
			t.Helper()
			leases.mu.Lock()
			defer leases.mu.Unlock()
			if got := leases.stored.Annotations[v1alpha1.AnnotationAgentVersion]; got != want {
				t.Errorf("%s: the Lease names the version %q, want %q", reason, got, want)
			}
		}
		expectVersion("at the start", "v1.2.3")
		pass(3 * heartbeatPeriod)
		expect("later", 0, "pod-1")
		expectAcquired("later", 3*heartbeatPeriod)
		leases.fail(nil, errors.New("stuck"))
		pass(2 * heartbeatPeriod)
		leases.fail(nil, nil)
		pass(heartbeatPeriod)
		expectAcquired("the Lease has not expired", 6*heartbeatPeriod)
		leases.fail(nil, errors.New("stuck"))
		pass(3 * heartbeatPeriod)
		expect("the agent does not work", 3*heartbeatPeriod, "pod-1")
		leases.fail(nil, nil)
		pass(heartbeatPeriod)
		expect("the agent works again", 0, "pod-1")
		expectAcquired("the Lease had expired", 0)
		leases.fail(errors.New("forbidden"), nil)
		pass(3 * heartbeatPeriod)
		leases.fail(nil, nil)
		pass(heartbeatPeriod)
		expect("the permission is granted", 0, "pod-1")
		expectAcquired("the Lease had expired again", 0)
		if got := lines.Load(); got != 3 {
			t.Errorf("%d lines are logged, want one for each failure", got)
		}
		pass(time.Second)
		cancel()
		<-done
		expect("the agent stops", 0, "")
		again, cancel := context.WithCancel(t.Context())
		done = make(chan struct{})
		restarted := NewHeartbeat(leases, "pod-1", "v1.3.0", leases.working, log)
		go func() { defer close(done); restarted.Run(again) }()
		pass(0)
		expectAcquired("after a restart", 0)
		expectVersion("after an upgrade", "v1.3.0")
		cancel()
		<-done
	})
}
