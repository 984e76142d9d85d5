package notify

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/threeport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	shop       = target.Instance{Type: target.WorkloadInstance, ID: 1}
	errNetwork = errors.New("connection reset by peer")
	errBusy    = &threeport.Error{Op: "send", StatusCode: 503}
	errUnknown = &threeport.Error{Op: "send", StatusCode: 401}
	errBad     = &threeport.Error{Op: "send", StatusCode: 400, Message: "Missing required field(s) : X"}
)

// status is a report that is its own key: the status of instance number id.
func status(id int64, word string) observe.Status {
	return observe.Status{Workload: target.Instance{Type: target.WorkloadInstance, ID: id}, Status: word}
}

// script is a sender with scripted answers.
type script struct {
	answer func(ctx context.Context, item outbox.Item) (outbox.Receipt, error)

	mu    sync.Mutex
	sends []time.Time
	words []string // the statuses that were sent
}

func (s *script) Send(ctx context.Context, item outbox.Item) (outbox.Receipt, error) {
	s.mu.Lock()
	s.sends = append(s.sends, time.Now())
	s.words = append(s.words, item.Report.Version())
	s.mu.Unlock()
	return s.answer(ctx, item)
}

// fails returns some errors first, one for each attempt of a report, and then accepts.
func fails(errs ...error) *script {
	return &script{answer: func(_ context.Context, item outbox.Item) (outbox.Receipt, error) {
		if item.Attempt <= len(errs) {
			return outbox.Receipt{}, errs[item.Attempt-1]
		}
		return outbox.Receipt{}, nil
	}}
}

// bench is a notifier with its outbox.
type bench struct {
	*Notifier
	box      *outbox.Outbox
	registry *prometheus.Registry

	mu   sync.Mutex
	logs []string
}

func newBench(config Config, sender Single) *bench {
	return newBenchOf(config, outbox.DefaultConfig(), sender)
}

func newBenchOf(config Config, box outbox.Config, sender Single) *bench {
	return newBenchOn(config, outbox.New(box, nil), OneByOne(sender))
}

func newBenchOn(config Config, box *outbox.Outbox, sender Sender) *bench {
	b := &bench{box: box, registry: prometheus.NewRegistry()}
	log := funcr.New(func(_, line string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.logs = append(b.logs, line)
	}, funcr.Options{Verbosity: 1})
	b.Notifier = New(config, b.box, sender, nil, NewMetrics(b.registry, b.box), log)
	return b
}

// logged counts the lines that contain a text.
func (b *bench) logged(text string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, line := range b.logs {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// start runs the notifier; stop ends and awaits it.
func (b *bench) start(t *testing.T) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	return func() error {
		cancel()
		return <-done
	}
}

// flush offers reports, stops at once, and so delivers all of them.
func (b *bench) flush(t *testing.T, reports ...observe.Report) {
	t.Helper()
	for _, r := range reports {
		b.box.Offer(r)
	}
	if err := b.start(t)(); err != nil {
		t.Error(err)
	}
}

// settle delivers reports until none is pending. It is for use in a synctest bubble.
func (b *bench) settle(t *testing.T, reports ...observe.Report) {
	t.Helper()
	for _, r := range reports {
		b.box.Offer(r)
	}
	stop := b.start(t)
	for b.box.Pending() > 0 {
		time.Sleep(time.Minute)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func (b *bench) metric(t *testing.T, name string, labels ...string) float64 {
	t.Helper()
	families, err := b.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			var got []string
			for _, l := range m.GetLabel() {
				got = append(got, l.GetValue())
			}
			if fmt.Sprint(got) != fmt.Sprint(labels) {
				continue
			}
			if h := m.GetHistogram(); h != nil {
				return h.GetSampleSum()
			}
			return m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return 0
}
