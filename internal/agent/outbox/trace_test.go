package outbox

import (
	"errors"
	"fmt"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
)

// traces records the spans that have ended.
type traces struct {
	*tracetest.SpanRecorder
	provider *sdktrace.TracerProvider
}

func newTraces() *traces {
	recorder := tracetest.NewSpanRecorder()
	return &traces{recorder, sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))}
}

// event is a sampled Event in a version.
func (r *traces) event(t *testing.T, version string) observe.Report {
	t.Helper()
	_, span := r.provider.Tracer("").Start(t.Context(), "observe")
	return observe.WithSpan(eventOf("e", version), span)
}

func eventOf(uid, version string) observe.Event {
	return observe.Event{Workload: shop, UID: types.UID(uid), ResourceVersion: version, Type: "Normal"}
}

// left returns how each span of the outbox ended, with its attempts.
func (r *traces) left() (out []string) {
	for _, span := range r.Ended() {
		if span.Name() != "outbox" {
			continue
		}
		attributes := map[string]string{}
		for _, attribute := range span.Attributes() {
			attributes[string(attribute.Key)] = attribute.Value.String()
		}
		out = append(out, attributes["threeport.report.left"]+" "+attributes["threeport.report.attempts"])
	}
	return out
}

func TestOutbox_SampledReport_HasASpanUntilItLeaves(t *testing.T) {
	for _, tc := range []struct {
		reason string
		do     func(o *Outbox, r *traces)
		want   []string
	}{
		{"delivered at the second attempt", func(o *Outbox, _ *traces) {
			o.Retry(take(t, o), 0, errSend)
			o.Ack(take(t, o), Receipt{})
		}, []string{"delivered 2"}},
		{"offered again in the same version", func(o *Outbox, r *traces) {
			o.Offer(r.event(t, "1"))
			o.Ack(take(t, o), Receipt{})
			o.Offer(r.event(t, "1"))
		}, []string{"delivered 1"}},
		{"replaced while it waits", func(o *Outbox, r *traces) {
			o.Offer(r.event(t, "2"))
			o.Ack(take(t, o), Receipt{})
		}, []string{"replaced 0", "delivered 1"}},
		{"replaced while it is sent", func(o *Outbox, r *traces) {
			item := take(t, o)
			o.Offer(r.event(t, "2"))
			o.Ack(item, Receipt{})
			o.Ack(take(t, o), Receipt{})
		}, []string{"delivered 1", "delivered 1"}},
		{"its version is offered again after another one while it is sent", func(o *Outbox, r *traces) {
			item := take(t, o)
			o.Offer(r.event(t, "2"))
			o.Offer(r.event(t, "1"))
			o.Ack(item, Receipt{})
		}, []string{"replaced 1", "delivered 1", "delivered 1"}},
		{"replaced while a request fails", func(o *Outbox, r *traces) {
			item := take(t, o)
			o.Offer(r.event(t, "2"))
			o.Offer(r.event(t, "3"))
			o.Retry(item, 0, errSend)
			o.Ack(take(t, o), Receipt{})
		}, []string{"replaced 1", "replaced 1", "delivered 2"}},
		{"rejected, and sent again on demand", func(o *Outbox, _ *traces) {
			o.Reject(take(t, o), errors.New("too long"))
			o.RetryRejected(shop)
			o.Ack(take(t, o), Receipt{})
		}, []string{"rejected 1", "delivered 2"}},
		{"cancelled", func(o *Outbox, _ *traces) { o.Cancel(observe.EventKey("e")) }, []string{"withdrawn 0"}},
		{"its row is gone", func(o *Outbox, _ *traces) { o.AckRemoved(take(t, o), MissingRow{Removed: true}) }, []string{"discarded 1"}},
		{"not sampled", func(o *Outbox, _ *traces) {
			o.Offer(eventOf("e", "2"))
			o.Ack(take(t, o), Receipt{})
		}, []string{"replaced 0"}},
	} {
		o, r := New(Config{}, nil), newTraces()
		o.Offer(r.event(t, "1"))
		tc.do(o, r)
		if got := r.left(); fmt.Sprint(got) != fmt.Sprint(tc.want) {
			t.Errorf("%s: the spans are %q, want %q", tc.reason, got, tc.want)
		}
		for _, span := range r.Ended() {
			if span.Name() == "outbox" && !span.Parent().IsValid() {
				t.Errorf("%s: a span of the outbox has no parent", tc.reason)
			}
		}
	}
}

func TestOutbox_EvictedReport_EndsItsSpan(t *testing.T) {
	r := newTraces()
	o := New(Config{MaxBytes: 1}, nil)
	o.Offer(r.event(t, "1"))
	if got := r.left(); fmt.Sprint(got) != "[dropped 0]" {
		t.Errorf("the spans are %q, want one that was dropped", got)
	}
}

// Without traces, the outbox does no more for them than look at a nil pointer.
func TestOutbox_WithoutTrace_AllocatesNothingForIt(t *testing.T) {
	var report observe.Report = eventOf("e", "1")
	if allocated := testing.AllocsPerRun(100, func() {
		report = enter(report)
		leave(report, leftDelivered, 1)
	}); allocated != 0 {
		t.Errorf("%v allocations, want none", allocated)
	}
}
