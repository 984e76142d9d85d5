package outbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
)

const (
	randomKeys     = 60
	randomGroups   = 25
	randomVersions = 40 // the last one of each key
)

// ledger is the control plane: it records what is sent.
type ledger struct {
	t *testing.T

	mu    sync.Mutex
	out   map[observe.OrderingKey]string // reports being sent, by group
	sent  map[string]int                 // the newest version that was sent, by key
	final map[string]bool                // keys whose last version was accepted
	rows  map[string]int64
}

func (l *ledger) begin(item Item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := item.Report.(report)
	if busy, ok := l.out[r.OrderingKey()]; ok {
		l.t.Errorf("%s comes out while %s of its group is", r, busy)
	}
	l.out[r.OrderingKey()] = r.String()
	version := versionOf(r)
	if version < l.sent[r.key] {
		l.t.Errorf("%s comes out after version %d", r, l.sent[r.key])
	}
	l.sent[r.key] = version
	if item.Receipt.RowID != l.rows[r.key] {
		l.t.Errorf("%s comes out with row %d, want %d", r, item.Receipt.RowID, l.rows[r.key])
	}
}

// end settles an item; the last version of a key is never rejected.
func (l *ledger) end(o *Outbox, item Item, outcome int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := item.Report.(report)
	delete(l.out, r.OrderingKey())
	version := versionOf(r)
	switch {
	case outcome < 3:
		o.Retry(item, time.Duration(outcome)*50*time.Millisecond, errSend)
	case outcome == 3 && version < randomVersions:
		o.Reject(item, errSend)
	default:
		l.rows[r.key]++
		l.final[r.key] = version == randomVersions
		o.Ack(item, Receipt{RowID: l.rows[r.key]})
	}
}

func versionOf(r report) int {
	version, _ := strconv.Atoi(r.version)
	return version
}

func TestOutbox_RandomUse_LosesNothingAndKeepsTheOrder(t *testing.T) {
	seed := rand.Uint64()
	for run := range uint64(8) {
		synctest.Test(t, func(t *testing.T) { randomUse(t, seed+run) })
		if t.Failed() {
			t.Fatalf("seed %d", seed+run)
		}
	}
}

func randomUse(t *testing.T, seed uint64) {
	t.Helper()
	useAtRandom(t, seed, 5, func(ctx context.Context, o *Outbox, l *ledger, random *rand.Rand) error {
		item, err := o.Next(ctx)
		if err != nil {
			return err
		}
		l.begin(item)
		time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
		l.end(o, item, random.IntN(8))
		return nil
	})
}

// useAtRandom has six producers, which offer all versions, and many consumers, which deliver until all is delivered.
func useAtRandom(t *testing.T, seed uint64, many int, deliver func(context.Context, *Outbox, *ledger, *rand.Rand) error) {
	t.Helper()
	o := New(Config{}, nil)
	l := &ledger{t: t, out: map[observe.OrderingKey]string{}, sent: map[string]int{}, final: map[string]bool{}, rows: map[string]int64{}}
	ctx, stop := context.WithTimeout(t.Context(), 24*time.Hour)
	defer stop()
	var producers, consumers sync.WaitGroup
	for producer := range 6 {
		producers.Go(func() { produce(o, rand.New(rand.NewPCG(seed, uint64(producer))), producer) })
	}
	for consumer := range many {
		random := rand.New(rand.NewPCG(seed, 100+uint64(consumer)))
		consumers.Go(func() {
			var err error
			for err == nil {
				err = deliver(ctx, o, l, random)
			}
			if !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
		})
	}
	producers.Wait()
	o.Close()
	consumers.Wait()
	for key := range randomKeys {
		if key := strconv.Itoa(key); !l.final[key] {
			t.Errorf("the last version of %s was not accepted; version %d was sent", key, l.sent[key])
		}
	}
	for key := range randomKeys {
		o.Forget(observe.Key(strconv.Itoa(key)))
	}
	expectEmpty(t, o)
}

// produce offers the versions of every sixth key in their order, and cancels some in between.
func produce(o *Outbox, random *rand.Rand, first int) {
	for version := 1; version <= randomVersions; version++ {
		for key := first; key < randomKeys; key += 6 {
			if random.IntN(3) == 0 && version < randomVersions {
				continue
			}
			r := in(fmt.Sprint("group", key%randomGroups), strconv.Itoa(key), strconv.Itoa(version))
			o.Offer(r)
			if random.IntN(10) == 0 {
				o.Cancel(r.Key())
				time.Sleep(time.Duration(random.IntN(30)) * time.Millisecond)
				o.Offer(r)
			}
			if random.IntN(4) == 0 {
				time.Sleep(time.Duration(random.IntN(30)) * time.Millisecond)
			}
		}
	}
}

// The cost of a take must not grow with the number of waiting groups.
func BenchmarkTakeWhileManyWait(b *testing.B) {
	o := New(Config{}, nil)
	for i := range 100_000 {
		o.Offer(at(fmt.Sprint("waiting", i), "1"))
		item, _ := o.take()
		o.Retry(item, time.Hour, errSend)
	}
	for i := 0; b.Loop(); i++ {
		o.Offer(at("busy", strconv.Itoa(i)))
		item, _ := o.take()
		o.Ack(item, Receipt{})
	}
}
