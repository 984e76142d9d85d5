package outbox

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	shop  = target.Instance{Type: target.WorkloadInstance, ID: 1}
	other = target.Instance{Type: target.HelmWorkloadInstance, ID: 1}
)

// report is a report of any key, group and version.
type report struct {
	key, group, version string
	instance            target.Instance
}

func (r report) Key() observe.Key                 { return observe.Key(r.key) }
func (r report) OrderingKey() observe.OrderingKey { return observe.OrderingKey(r.group) }
func (r report) Version() string                  { return r.version }
func (r report) Instance() target.Instance        { return r.instance }
func (r report) String() string                   { return r.key + "@" + r.version }

// at is a report of a key in a group of its own.
func at(key, version string) report { return report{key, key, version, shop} }

// in is a report of a key in a group.
func in(group, key, version string) report { return report{key, group, version, shop} }

// without is a protocol that has no place for a key. It takes the word of a status only.
type without observe.Key

func (w without) Version(r observe.Report) (string, bool) {
	if s, ok := r.(observe.Status); ok {
		return s.Status, true
	}
	return r.Version(), r.Key() != observe.Key(w)
}

var errSend = errors.New("no answer")

// Retry is Nack with a wait that the test chooses.
func (o *Outbox) Retry(item Item, after time.Duration, cause error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.requeueFailed(o.takeBack(item), item, cause, after)
}

// Forget forgets one key of a group.
func (o *Outbox) Forget(key observe.Key) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e := o.entries[key]; e != nil {
		o.forget(e)
	}
}

// take returns an item, if one is ready.
func (o *Outbox) take() (Item, error) {
	items, _, err := o.takeBatch(1)
	if len(items) == 0 {
		return Item{}, err
	}
	return items[0], err
}

// take takes an item that is ready.
func take(t *testing.T, o *Outbox) Item {
	t.Helper()
	item, ok := tryTake(t, o)
	if !ok {
		t.Fatal("nothing is ready")
	}
	return item
}

func tryTake(t *testing.T, o *Outbox) (Item, bool) {
	t.Helper()
	item, err := o.take()
	if err != nil {
		t.Fatal(err)
	}
	return item, item.Report != nil
}

func expectTake(t *testing.T, o *Outbox, want string) Item {
	t.Helper()
	item := take(t, o)
	if got := fmt.Sprint(item.Report); got != want {
		t.Fatalf("took %s, want %s", got, want)
	}
	return item
}

func expectNothing(t *testing.T, o *Outbox) {
	t.Helper()
	if item, ok := tryTake(t, o); ok {
		t.Fatalf("took %s, want nothing", item.Report)
	}
}

// next waits for an item for a day at most, and returns how long it took. It is for use in a synctest bubble.
func next(t *testing.T, o *Outbox) (Item, time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
	defer cancel()
	start := time.Now()
	item, err := o.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return item, time.Since(start)
}

func expectPending(t *testing.T, o *Outbox, pending, failing int) {
	t.Helper()
	if o.Pending() != pending || o.Failing() != failing {
		t.Errorf("%d are pending, of which %d failed; want %d and %d", o.Pending(), o.Failing(), pending, failing)
	}
}

// expectEmpty checks that the outbox is empty.
func expectEmpty(t *testing.T, o *Outbox) {
	t.Helper()
	if len(o.entries) > 0 || len(o.groups) > 0 || !o.queues.isEmpty() || o.counts.inFlight > 0 || o.counts.pending > 0 || o.counts.failed > 0 {
		t.Errorf("%d entries, %d groups, something to send: %t, %d in flight, %d pending, %d failed; want none",
			len(o.entries), len(o.groups), !o.queues.isEmpty(), o.counts.inFlight, o.counts.pending, o.counts.failed)
	}
	for id, account := range o.accounts {
		if len(account.pending) > 0 {
			t.Errorf("%d are pending of %s", len(account.pending), id)
		}
	}
}

// Next is NextBatch for one report.
func (o *Outbox) Next(ctx context.Context) (Item, error) {
	items, err := o.NextBatch(ctx, 1)
	if err != nil {
		return Item{}, err
	}
	return items[0], nil
}
