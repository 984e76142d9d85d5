package faults

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/e2e/proxy"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// Three in ten answers are lost after the control plane has applied the request. Repeating a POST without a check would make
// a second row.
func TestDelivery_AnswersLost(t *testing.T) {
	t.Parallel()
	forEachProtocol(t, answersLost)
}

func answersLost(w *faultWorld) {
	random := seed(w.T)
	objects := w.deployWeb()
	// The initial sync needs several reads in a row, which rarely all succeed with this rate.
	w.await(1, "before answers are lost", func(r proxy.Request) bool { return r.Accepted && r.WritesToAny(upstream.WorkloadResourceInstances) })
	var lost, cut atomic.Int64
	w.proxy.SetScript(func(proxy.Request) proxy.Fault {
		switch n := random.IntN(100); {
		case n < 30:
			lost.Add(1)
			return proxy.Fault{Lose: true}
		case n < 40:
			cut.Add(1)
			return proxy.Fault{Cut: true}
		}
		return proxy.Fault{}
	})
	load := w.startLoad(seed(w.T), 20, objects)
	w.Pause(20 * time.Second)
	w.Eventually("50 lost and 10 cut answers", func() error {
		if lost.Load() < 50 || cut.Load() < 10 {
			return fmt.Errorf("%d answers were lost and %d were cut", lost.Load(), cut.Load())
		}
		return nil
	})
	load.stop()
	// Answers are still lost while the remaining reports are delivered.
	w.awaitAgreement()
	w.proxy.SetScript(nil)
	w.Logf("%d answers were lost and %d cut, of %d", lost.Load(), cut.Load(), w.proxy.Count(proxy.Any))
}

// The control plane is down for two minutes while the cluster changes. The agent retries with backoff.
func TestDelivery_ControlPlaneDown(t *testing.T) {
	t.Parallel()
	forEachProtocol(t, controlPlaneDown)
}

func controlPlaneDown(w *faultWorld) {
	objects := w.deployWeb()
	load := w.startLoad(seed(w.T), 20, objects)
	w.await(20, "before the outage", proxy.Request.IsWrite)
	before, seen := w.proxy.Count(proxy.Any), w.Oracle.EventCount()
	// For half of the time it answers with 503, then not at all.
	w.proxy.SetScript(func(proxy.Request) proxy.Fault { return proxy.Fault{Status: http.StatusServiceUnavailable} })
	w.Pause(60 * time.Second)
	during := w.proxy.Count(proxy.Any) - before
	w.Logf("there were %d requests in a minute of 503", during)
	if during > 120 {
		w.Errorf("the agent sent %d requests during a minute of answers with 503, want at most 120", during)
	}
	w.toAPI.down()
	w.Pause(60 * time.Second)
	piledUp, taken := w.Oracle.EventCount()-seen, len(w.proxy.Accepted())
	w.toAPI.up()
	w.proxy.SetScript(nil)
	back := time.Now()
	// A new report does not wait for the backlog.
	fresh := w.change(objects[0])
	w.Eventually("the change after the outage", func() error { return w.expectVersion(0, fresh.GetResourceVersion()) })
	first := len(w.proxy.Accepted()) - taken
	w.Logf("a change right after the outage was reported %s later, among the first %d reports of a backlog of %d Events",
		time.Since(back).Round(time.Millisecond), first, piledUp)
	if first >= piledUp {
		w.Errorf("a change right after the outage came after %d other reports, want it to alternate with the backlog of %d Events", first, piledUp)
	}
	load.stop()
	w.awaitAgreement()
}

// expectVersion expects the row of a listed object of the first workload to have a version, or a later one.
func (w *faultWorld) expectVersion(resource int, version string) error {
	path := world.RowPath(w.deployed[0], resource)
	want, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return err
	}
	for _, write := range slices.Backward(w.proxy.Accepted()) {
		if write.Path != path {
			continue
		}
		var written struct {
			RuntimeDefinition struct {
				Metadata struct{ ResourceVersion string }
			}
		}
		if err := json.Unmarshal(write.Body, &written); err != nil {
			return err
		}
		if got, err := strconv.ParseUint(written.RuntimeDefinition.Metadata.ResourceVersion, 10, 64); err != nil || got < want {
			return errors.Join(err, fmt.Errorf("%s has version %d, want %s", path, got, version))
		}
		return nil
	}
	return fmt.Errorf("the control plane accepted no write to %s", path)
}

// expectOperation expects the row of a listed object of the first workload to have a last operation.
func (w *faultWorld) expectOperation(resource int, want string) error {
	path := world.RowPath(w.deployed[0], resource)
	for _, write := range slices.Backward(w.proxy.Accepted()) {
		if write.Path == path {
			if got := world.OperationOf(write); got != want {
				return fmt.Errorf("%s has operation %s, want %s", path, got, want)
			}
			return nil
		}
	}
	return fmt.Errorf("the control plane accepted no write to %s", path)
}

// Errors 400 for one object and 500 for another must not delay other objects.
func TestDelivery_RejectedReport_BlocksNoOther(t *testing.T) {
	t.Parallel()
	forEachProtocol(t, rejectedReportBlocksNoOther)
}

func rejectedReportBlocksNoOther(w *faultWorld) {
	d := w.deploy("web", world.ConfigMap("good"), world.ConfigMap("rejected"), world.ConfigMap("failing"))
	good, rejected, failing := w.Get(d.Objects[0]), d.Objects[1], d.Objects[2]
	w.awaitAgreement()
	initial := w.proxy.Count(func(r proxy.Request) bool { return r.WritesOnlyTo(world.RowPath(d, 1)) })
	w.proxy.SetScript(func(r proxy.Request) proxy.Fault {
		switch {
		case r.WritesTo(world.RowPath(d, 1)):
			return proxy.Fault{Status: http.StatusBadRequest}
		case r.WritesTo(world.RowPath(d, 2)), r.Contains("poisonous"):
			return proxy.Fault{Status: http.StatusInternalServerError}
		}
		return proxy.Fault{}
	})
	w.change(rejected)
	w.change(failing)
	w.createEvent(good, "poisonous")
	tries := func() int {
		return w.proxy.Count(func(r proxy.Request) bool { return r.WritesTo(world.RowPath(d, 2)) || r.Contains("poisonous") })
	}
	begin, free := time.Now(), 0
	const changes = 40
	for i := range changes {
		before := tries()
		changed := w.change(good)
		w.createEvent(good, fmt.Sprintf("healthy-%d", i))
		w.Eventually("the change of the good object", func() error { return w.expectVersion(0, changed.GetResourceVersion()) })
		if tries() == before {
			free++
		}
		w.Pause(250 * time.Millisecond)
	}
	all := tries()
	attempts := w.proxy.Count(func(r proxy.Request) bool { return r.WritesOnlyTo(world.RowPath(d, 1)) })
	took := time.Since(begin)
	w.Logf("in %s the agent sent the failing reports %d times, and not while %d of %d changes of the good object waited",
		took.Round(time.Second), all, free, changes)
	if free < changes/4 {
		w.Errorf("the agent reported %d of %d changes of the good object without an attempt of a failing report, want at least %d", free, changes, changes/4)
	}
	// The backoff begins at up to 0.5 s and doubles up to a minute, with jitter.
	if enough := 2 * (20 + int(took/(15*time.Second))); all < 4 || all > enough {
		w.Errorf("the agent sent the failing reports %d times, want 4 to %d", all, enough)
	}
	if attempts != initial+1 {
		w.Errorf("the agent sent the rejected report %d times by itself, want 1", attempts-initial)
	}
	w.expectRejected(d)

	// A rejected report is sent again after its object changes; a failed one is retried anyway.
	w.proxy.SetScript(nil)
	w.change(rejected)
	w.awaitAgreement()
}

// expectRejected waits until a workload's status shows a rejected report.
func (w *faultWorld) expectRejected(d upstream.Deployed) {
	w.Helper()
	w.Eventually("the rejected report in the workload's status", func() error {
		workload, err := w.ThreeportWorkload(d)
		if err != nil {
			return err
		}
		delivery := workload.Status.Delivery
		if delivery.Rejected == 0 || len(delivery.Rejections) == 0 || !strings.Contains(delivery.Rejections[0].Reason, "injected by the test") {
			return fmt.Errorf("the delivery in the status is %+v", delivery)
		}
		return nil
	})
}

// After an answer with Retry-After the agent sends nothing until the time is over.
func TestDelivery_RetryAfter(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			forEachProtocol(t, func(w *faultWorld) {
				load := w.startLoad(seed(w.T), 20, w.deployWeb())
				w.await(20, "before the first Retry-After", proxy.Request.IsWrite)
				for _, seconds := range []int{2, 5} {
					w.expectSilence(status, seconds)
				}
				load.stop()
				w.awaitAgreement()
			})
		})
	}
}

// expectSilence answers one request with Retry-After, and expects no other until the time is over. Package outbox tests with
// a fake clock when the next one follows.
func (w *faultWorld) expectSilence(status, seconds int) {
	w.Helper()
	var throttled atomic.Pointer[time.Time]
	header := http.Header{"Retry-After": {fmt.Sprint(seconds)}}
	w.proxy.SetScript(func(r proxy.Request) proxy.Fault {
		if r.IsWrite() && throttled.CompareAndSwap(nil, new(time.Now())) {
			return proxy.Fault{Status: status, Header: header}
		}
		return proxy.Fault{}
	})
	w.Eventually("a write to answer with Retry-After", func() error {
		if throttled.Load() == nil {
			return errors.New("the agent has sent none")
		}
		return nil
	})
	w.proxy.SetScript(nil)
	from, retryAfter := *throttled.Load(), time.Duration(seconds)*time.Second
	w.await(1, "after the silence", func(r proxy.Request) bool { return r.At.After(from.Add(retryAfter)) })
	// Requests that were open when the answer came. Without the wait the load would cause 20 requests a second.
	during := w.proxy.Sent(func(r proxy.Request) bool { return r.At.After(from) && r.At.Before(from.Add(retryAfter)) })
	w.Logf("%d with Retry-After %d: %d requests until that was over", status, seconds, len(during))
	if len(during) > maxOpen {
		w.Errorf("the agent sent %d requests in the %d s after %d with Retry-After %d, want at most %d", len(during), seconds, status, seconds, maxOpen)
	}
}
