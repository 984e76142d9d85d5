package kubectl

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/health"
)

// Limits of the age of a status that the agent vouches for. The clock of the agent's node may differ from that of the API server by
// clockTolerance. The agent confirms an unchanged status after five minutes, and has as much again for a failed write.
const (
	clockTolerance  = 15 * time.Second
	confirmedWithin = 10 * time.Minute
)

// leaseState is the last renewal of the agent's Lease.
type leaseState struct {
	renewed time.Time // zero if the Lease does not exist or may not be read
	expires time.Time // zero if it is released
}

// leases are the states of the Leases that statuses name.
type leases map[v1alpha1.LeaseReference]leaseState

// leases reads the Leases of some workloads. One that cannot be read has no state, and the age of the status counts alone.
func (c *connection) leases(ctx context.Context, list []v1alpha1.ThreeportWorkload) (leases, error) {
	client, err := c.dynamic()
	if err != nil {
		return nil, err
	}
	out := leases{}
	for i := range list {
		ref := list[i].Status.Lease
		if ref == nil {
			continue
		}
		if _, known := out[*ref]; known {
			continue
		}
		out[*ref] = leaseState{}
		u, err := client.Resource(resource("coordination.k8s.io", "v1", "leases")).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			continue
		}
		var lease coordinationv1.Lease
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &lease); err == nil {
			out[*ref] = stateOf(lease.Spec)
		}
	}
	return out, nil
}

// stateOf returns the state of a Lease.
func stateOf(lease coordinationv1.LeaseSpec) (s leaseState) {
	if lease.RenewTime == nil {
		return s
	}
	s.renewed = lease.RenewTime.Time
	if lease.HolderIdentity != nil && *lease.HolderIdentity != "" && lease.LeaseDurationSeconds != nil {
		s.expires = s.renewed.Add(time.Duration(*lease.LeaseDurationSeconds)*time.Second + clockTolerance)
	}
	return s
}

// notReportingSince returns since when no agent vouches for the status of a workload; zero if one does. An agent of an
// earlier version does not confirm statuses, so nothing is known of it.
func (l leases) notReportingSince(wl *v1alpha1.ThreeportWorkload, now time.Time) time.Time {
	confirmed := wl.Status.ConfirmedAt
	if confirmed == nil {
		return time.Time{}
	}
	if ref := wl.Status.Lease; ref != nil {
		if s := l[*ref]; !s.renewed.IsZero() && now.After(s.expires) {
			return s.renewed
		}
	}
	if now.Sub(confirmed.Time) > confirmedWithin {
		return confirmed.Time
	}
	return time.Time{}
}

// markOutdated replaces the verdict of a workload that no agent vouches for.
func (s *workloadStatus) markOutdated(since time.Time) {
	last := s.Status
	message := fmt.Sprintf("agent not reporting since %s; last status: %s", since.UTC().Format(time.RFC3339), last)
	if cause := s.cause(); cause != "" {
		message += ": " + cause
	}
	s.override(health.Unknown, "AgentNotReporting", message)
	s.LastStatus, s.Since, s.Ready, s.Pods = last, &metav1.Time{Time: since}, nil, nil
}

// serverClock is the clock of the API server, by the latest answer. The clock of the user's machine may differ.
type serverClock struct {
	mu     sync.Mutex
	offset time.Duration
}

// wrap observes the answers of the API server.
func (c *serverClock) wrap(next http.RoundTripper) http.RoundTripper { return &clockTransport{next, c} }

// at returns the time of the API server at a time of this machine.
func (c *serverClock) at(local time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return local.Add(c.offset)
}

type clockTransport struct {
	next  http.RoundTripper
	clock *serverClock
}

func (t *clockTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		t.clock.mu.Lock()
		t.clock.offset = time.Until(date)
		t.clock.mu.Unlock()
	}
	return resp, nil
}
