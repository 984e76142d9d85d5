package notify

import (
	"context"
	"sync"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// AgentInfo identifies this agent in report sets.
type AgentInfo struct {
	// ClusterName is for people; it may be empty.
	ClusterName string
	Version     string
	// ClusterUID reads the UID of the namespace kube-system. It is called until it succeeds. Without the UID no report set
	// can be sent.
	ClusterUID func(context.Context) (string, error)
	// Ready reports whether the agent has listed the watched objects; nil for always. A heartbeat says that the last statuses still
	// hold, so there is none before, for readyTime at most.
	Ready func() bool
}

// readyTime bounds the wait for the first heartbeat: a kind may never sync.
const readyTime = time.Minute

// agentState is the description of the agent in each report set.
type agentState struct {
	info AgentInfo
	box  *outbox.Outbox

	mu         sync.Mutex
	clusterUID string    // empty until it is known
	delayed    time.Time // the last answer of the outbox; see delayedSince
	readAt     time.Time // when delayed was read
}

// identify reads the cluster's UID if it is not known yet.
func (a *agentState) identify(ctx context.Context) error {
	a.mu.Lock()
	known := a.clusterUID != ""
	a.mu.Unlock()
	if known {
		return nil
	}
	uid, err := a.info.ClusterUID(ctx)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.clusterUID = uid
	return nil
}

// describe returns the agent's identity, and how far its deliveries are behind.
func (a *agentState) describe() threeport.Agent {
	now := time.Now()
	out := threeport.Agent{
		ClusterName: a.info.ClusterName, Version: a.info.Version, Time: now.UTC().Truncate(time.Microsecond),
		Pending: int64(a.box.Pending()), DeadLetters: int64(a.box.DeadLetters()), Dropped: a.box.Dropped(),
	}
	a.mu.Lock()
	out.ClusterUID = a.clusterUID
	a.mu.Unlock()
	if since := a.delayedSince(now); out.Pending > 0 && !since.IsZero() {
		out.DelaySeconds = max(now.Sub(since).Seconds(), 0)
	}
	return out
}

// delayedSince is [outbox.Outbox.DelayedSince]. The answer may be a second old, because the outbox has to scan all pending reports for
// it.
func (a *agentState) delayedSince(now time.Time) time.Time {
	a.mu.Lock()
	since, isFresh := a.delayed, now.Sub(a.readAt) < time.Second
	a.mu.Unlock()
	if isFresh {
		return since
	}
	since = a.box.DelayedSince()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.delayed, a.readAt = since, now
	return since
}
