package notify

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// rhythm is when the control plane is asked how it takes reports, and how often it hears of an agent that has nothing to
// tell.
type rhythm struct {
	tick time.Duration
	// look is how long a server that does not take sets is left alone: it may have been upgraded by then.
	look time.Duration
	// again is the wait after a question that was not answered, which doubles up to slowest.
	again, slowest time.Duration
	// calm is the wait after sets were taken and are not any more, which doubles up to look each time that it happens
	// again: servers of both kinds may answer in turns while they are upgraded. It is forgotten once sets were taken for as
	// long as steady.
	calm, steady time.Duration
	// beat is how often a heartbeat comes if there is nothing else.
	beat time.Duration
}

func defaultRhythm() rhythm {
	return rhythm{
		tick: time.Second, look: 5 * time.Minute, again: time.Second, slowest: 30 * time.Second,
		calm: 30 * time.Second, steady: 10 * time.Minute, beat: 15 * time.Second,
	}
}

// AgentInfo is who this agent is.
type AgentInfo struct {
	// ClusterName is for people; it may be empty.
	ClusterName string
	Version     string
	// ClusterUID asks the cluster for the UID of its namespace kube-system. It is called until it succeeds: without it
	// reports cannot be sent in sets.
	ClusterUID func(context.Context) (string, error)
}

// Backlog is what is not delivered. *outbox.Outbox is one.
type Backlog interface {
	Outbox
	Oldest() time.Time
}

// Link is the sender to a control plane: in sets, or in requests of version v0, as it takes them.
type Link struct {
	self    AgentInfo
	client  *threeport.Client
	v0      *V0Sender
	sets    *sets
	metrics *LinkMetrics
	log     logr.Logger
	backlog Backlog
	changed func(sets bool)
	rhythm  rhythm

	looked   chan struct{} // closed once the first question was answered, or failed
	lookOnce sync.Once

	inSets atomic.Bool // the outbox asks with its own mutex held

	mu      sync.Mutex
	cluster string    // its UID, once it is known
	due     time.Time // when to ask whether sets are taken
	tries   int       // questions that were not answered, since one was
	losses  int       // how often sets were not taken any more, in a short time
	since   time.Time // when sets began to be taken
	// oldestAt is since when the oldest report of the backlog is pending, readAt when that was read.
	oldestAt, readAt time.Time
}

// NewLink returns a link that does not send before it is run. See [Link.Attach].
func NewLink(client *threeport.Client, self AgentInfo, metrics *LinkMetrics, log logr.Logger) *Link {
	l := &Link{
		self: self, client: client, v0: NewV0Sender(client), metrics: metrics, log: log,
		changed: func(bool) {}, rhythm: defaultRhythm(), looked: make(chan struct{}),
	}
	l.sets = &sets{client: client, metrics: metrics, single: l.v0, agent: l.agent}
	return l
}

// Attach tells the link where the reports come from, before it is run. Changed is called when the control plane begins to
// take sets, and when it ends: what it was told of workloads as a whole (statuses, and with sets trees and all objects) is
// to be offered again. It must not block.
func (l *Link) Attach(backlog Backlog, changed func(sets bool)) {
	l.backlog, l.changed = backlog, changed
}

// Supports reports whether the control plane has a place for a report, as it takes them now.
func (l *Link) Supports(r observe.Report) bool {
	if !l.inSets.Load() {
		return l.v0.Supports(r)
	}
	op, isOperation := r.(observe.Operation)
	return !isOperation || op.Attribution.Listed
}

// MaxBatch is how many reports are taken at a time.
func (l *Link) MaxBatch() int {
	if l.inSets.Load() {
		return l.sets.MaxBatch()
	}
	return 1
}

// Send delivers reports in the way in which the control plane takes them. What it turns out not to take in this way comes
// back with [ErrProtocolChanged].
func (l *Link) Send(ctx context.Context, items []outbox.Item) []Result {
	select {
	case <-l.looked:
	case <-ctx.Done():
	}
	if !l.inSets.Load() {
		return l.one(ctx, items)
	}
	results := l.sets.Send(ctx, items)
	for _, r := range results {
		if errors.Is(r.Err, ErrProtocolChanged) {
			l.lose()
			break
		}
	}
	return results
}

// one sends reports one by one. What was taken out to be sent in sets and has no place here goes back.
func (l *Link) one(ctx context.Context, items []outbox.Item) []Result {
	out := make([]Result, len(items))
	for i, item := range items {
		if l.v0.Supports(item.Report) {
			out[i].Receipt, out[i].Err = l.v0.Send(ctx, item)
		} else {
			out[i].Err = ErrProtocolChanged
		}
	}
	return out
}

// Run asks how the control plane takes reports, and lets it hear that the agent is there, until the context ends. In an
// outage it leaves both to the reports. It returns nil.
func (l *Link) Run(ctx context.Context) error {
	defer l.lookOnce.Do(func() { close(l.looked) })
	l.look(ctx)
	l.lookOnce.Do(func() { close(l.looked) })
	tick := time.NewTicker(l.rhythm.tick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		switch {
		case l.backlog != nil && l.backlog.Suspended():
		case l.inSets.Load():
			if err := l.sets.beat(ctx, l.rhythm.beat); isOtherWay(err) {
				l.lose()
			}
		case l.isDue():
			l.look(ctx)
		}
	}
}

func isOtherWay(err error) bool {
	status := threeport.StatusOf(err)
	return status == http.StatusNotFound || status == http.StatusMethodNotAllowed
}

func (l *Link) isDue() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !time.Now().Before(l.due)
}

// look asks whether the control plane takes sets.
func (l *Link) look(ctx context.Context) {
	offer, err := l.client.ReportSetVersions(ctx)
	if err == nil && offer.Takes() {
		err = l.identify(ctx)
	}
	if ctx.Err() != nil {
		return
	}
	l.mu.Lock()
	l.due = time.Now().Add(l.wait(err))
	takes := err == nil && offer.Takes()
	if takes {
		l.since = time.Now()
		l.sets.offered(offer)
		l.inSets.Store(true)
	}
	l.mu.Unlock()
	switch {
	case takes:
		l.metrics.mode(true)
		l.log.Info("The control plane takes report sets", "encoding", offer.Encoding())
		l.changed(true)
	case err != nil:
		l.log.V(1).Info("Whether the control plane takes report sets is not known; reports are sent one by one", "error", err.Error())
	}
}

// wait returns when to ask again, with mu held.
func (l *Link) wait(err error) time.Duration {
	if err == nil {
		l.tries = 0
		return l.rhythm.look
	}
	l.tries++
	return min(l.rhythm.again<<min(l.tries-1, 10), l.rhythm.slowest)
}

// identify asks for the cluster's UID, if it is not known yet.
func (l *Link) identify(ctx context.Context) error {
	l.mu.Lock()
	known := l.cluster != ""
	l.mu.Unlock()
	if known {
		return nil
	}
	uid, err := l.self.ClusterUID(ctx)
	if err != nil {
		l.log.Info("The cluster's UID cannot be read: reports are sent one by one until it can", "error", err.Error())
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cluster = uid
	return nil
}

// lose goes back to v0: a server does not take sets.
func (l *Link) lose() {
	if !l.inSets.CompareAndSwap(true, false) {
		return // another request found the same
	}
	l.mu.Lock()
	if time.Since(l.since) >= l.rhythm.steady {
		l.losses = 0
	}
	calm := min(l.rhythm.calm<<min(l.losses, 10), l.rhythm.look)
	l.losses++
	l.due = time.Now().Add(calm)
	l.mu.Unlock()
	l.metrics.mode(false)
	l.log.Info("The control plane does not take report sets any more; reports are sent one by one", "askedAgainIn", calm.String())
	l.changed(false)
}

// agent returns who this is, and how far behind it is.
func (l *Link) agent() threeport.Agent {
	now := time.Now()
	l.mu.Lock()
	out := threeport.Agent{
		ClusterUID: l.cluster, ClusterName: l.self.ClusterName, Version: l.self.Version, Time: now.UTC().Truncate(time.Microsecond),
	}
	l.mu.Unlock()
	if l.backlog == nil {
		return out
	}
	out.Pending = int64(l.backlog.Pending())
	if oldest := l.oldest(now); out.Pending > 0 && !oldest.IsZero() {
		out.DelaySeconds = max(now.Sub(oldest).Seconds(), 0)
	}
	out.DeadLetters, out.Dropped = int64(l.backlog.DeadLetters()), l.backlog.Dropped()
	return out
}

// oldest returns since when the oldest report is pending, as it was up to a second ago: it is looked for among all.
func (l *Link) oldest(now time.Time) time.Time {
	l.mu.Lock()
	at, fresh := l.oldestAt, now.Sub(l.readAt) < time.Second
	l.mu.Unlock()
	if fresh {
		return at
	}
	at = l.backlog.Oldest()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.oldestAt, l.readAt = at, now
	return at
}
