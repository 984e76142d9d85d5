package kubectl

import (
	"context"
	"fmt"
	"net/http"
	"slices"
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
	// startTime is how long an agent that starts or resumes may keep the statuses from before, until it has seen all objects.
	startTime = 10 * time.Second
)

const (
	// agentNotReporting is the reason of a status that no agent vouches for.
	agentNotReporting = "AgentNotReporting"
	// agentStarting is the reason of a status from before the agent started or resumed a moment ago.
	agentStarting = "AgentStarting"
	// freshCommand is the command that needs no agent.
	freshCommand = "kubectl threeport status --fresh"
)

// leaseState is the last renewal of the agent's Lease.
type leaseState struct {
	// started is when the agent started, or resumed after the Lease had expired; zero if that is not known.
	started time.Time

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
	if lease.AcquireTime != nil {
		s.started = lease.AcquireTime.Truncate(time.Second) // the resolution of confirmedAt
	}
	if lease.HolderIdentity != nil && *lease.HolderIdentity != "" && lease.LeaseDurationSeconds != nil {
		s.expires = s.renewed.Add(time.Duration(*lease.LeaseDurationSeconds)*time.Second + clockTolerance)
	}
	return s
}

// lastConfirmation returns when the agent last confirmed one of some statuses; zero if it confirmed none.
func lastConfirmation(list []v1alpha1.ThreeportWorkload) (last time.Time) {
	for i := range list {
		if at := list[i].Status.ConfirmedAt; at != nil && at.After(last) {
			last = at.Time
		}
	}
	return last
}

// outdated says why no agent vouches for a status.
type outdated struct {
	since  time.Time // when that began; zero if an agent vouches for it
	reason string    // agentNotReporting or agentStarting
	silent bool      // the agent reports on no workload at all
}

// outdated returns whether an agent vouches for the status of a workload. last is the last confirmation of any status: if it is too
// old, the agent is silent. An agent of an earlier version does not confirm statuses, so nothing is known of it.
func (l leases) outdated(wl *v1alpha1.ThreeportWorkload, last, now time.Time) outdated {
	confirmed := wl.Status.ConfirmedAt
	if confirmed == nil {
		return outdated{}
	}
	if ref := wl.Status.Lease; ref != nil {
		s := l[*ref]
		if !s.renewed.IsZero() && now.After(s.expires) {
			return outdated{s.renewed, agentNotReporting, true}
		}
		if now.Before(s.started.Add(startTime)) && confirmed.Time.Before(s.started) {
			return outdated{s.started, agentStarting, false}
		}
	}
	switch {
	case now.Sub(last) > confirmedWithin:
		return outdated{last, agentNotReporting, true}
	case now.Sub(confirmed.Time) > confirmedWithin:
		return outdated{confirmed.Time, agentNotReporting, false}
	}
	return outdated{}
}

// markOutdated replaces the verdict of a workload that no agent vouches for.
func (s *workloadStatus) markOutdated(why outdated) {
	s.agentSilent = why.silent
	s.lastWords = fmt.Sprintf("last status: %s", s.Status)
	if cause := s.cause(); cause != "" {
		s.lastWords += ": " + cause
	}
	since := why.since.UTC().Format(time.RFC3339)
	if s.DeletionRequested != nil {
		s.lastWords = "deletion waits for the agent since " + s.DeletionRequested.UTC().Format(time.RFC3339) + "; " + s.lastWords
	}
	message := "agent not reporting since " + since
	if why.reason == agentStarting {
		message = "agent reports again since " + since + ", and has not confirmed the status yet"
	}
	last, lastSince := s.Status, s.Since
	s.override(health.Unknown, why.reason, message+"; "+s.lastWords)
	s.LastStatus, s.lastSince, s.Since, s.Ready, s.Pods = last, lastSince, &metav1.Time{Time: why.since}, nil, nil
}

// silence returns one sentence for all workloads if the agent is silent, and the workloads without it. Otherwise the sentence is
// empty.
func silence(all []workloadStatus, now time.Time) (sentence string, rest []workloadStatus) {
	var since time.Time
	rest = slices.Clone(all)
	for i := range rest {
		s := &rest[i]
		if !s.agentSilent {
			continue
		}
		if !since.IsZero() && !since.Equal(s.since()) { // by several Leases
			return "", all
		}
		since = s.since()
		s.Reason, s.Message = "", s.lastWords
	}
	if since.IsZero() {
		return "", all
	}
	return fmt.Sprintf("The agent does not report: it was last seen at %s, %s ago.", since.UTC().Format(time.RFC3339), ago(since, now)), rest
}

// freshHint follows the sentence of a silent agent.
const freshHint = " `" + freshCommand + "` assesses the objects now."

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
