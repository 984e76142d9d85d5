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

	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// Three in ten answers are lost after the control plane has applied the request. Repeating a POST without a check would make
// a second row.
func TestDelivery_AnswersLost(t *testing.T) {
	t.Parallel()
	forEachProtocol(t, answersLost)
}

func answersLost(w *world) {
	random := seed(w.T)
	objects := w.deployWeb()
	// The initial sync needs several reads in a row, which rarely all succeed with this rate.
	w.await(waitTimeout, 1, "before answers are lost", func(r request) bool { return r.accepted && r.writesToAny(upstream.WorkloadResourceInstances) })
	lost, cut := 0, 0
	w.proxy.setScript(func(request) fault {
		switch n := random.IntN(100); {
		case n < 30:
			lost++
			return fault{lose: true}
		case n < 40:
			cut++
			return fault{cut: true}
		}
		return fault{}
	})
	load := w.startLoad(seed(w.T), 20, objects)
	w.pause(20 * time.Second)
	w.eventually(waitTimeout, "many answers to be lost and some to be cut", func() error {
		w.proxy.mu.Lock()
		defer w.proxy.mu.Unlock()
		if lost < 50 || cut < 10 {
			return fmt.Errorf("%d were lost and %d cut", lost, cut)
		}
		return nil
	})
	load.stop()
	// Answers are still lost while the remaining reports are delivered.
	w.awaitAgreement(waitTimeout)
	w.proxy.setScript(nil)
	w.Logf("%d answers were lost and %d cut, of %d", lost, cut, w.proxy.count(anyRequest))
}

// The control plane is down for two minutes while the cluster changes. The agent retries with backoff.
func TestDelivery_ControlPlaneDown(t *testing.T) {
	t.Parallel()
	forEachProtocol(t, controlPlaneDown)
}

func controlPlaneDown(w *world) {
	objects := w.deployWeb()
	load := w.startLoad(seed(w.T), 20, objects)
	w.await(waitTimeout, 20, "before the outage", request.isWrite)
	before, seen := w.proxy.count(anyRequest), w.oracle.EventCount()
	// For half of the time it answers with 503, then not at all.
	w.proxy.setScript(func(request) fault { return fault{status: http.StatusServiceUnavailable} })
	w.pause(60 * time.Second)
	during := w.proxy.count(anyRequest) - before
	w.Logf("there were %d requests in a minute of 503", during)
	if during > 120 {
		w.Errorf("there were %d requests during a minute of answers with 503, want only a few attempts", during)
	}
	w.toAPI.down()
	w.pause(60 * time.Second)
	piledUp, taken := w.oracle.EventCount()-seen, len(w.proxy.accepted())
	w.toAPI.up()
	w.proxy.setScript(nil)
	back := time.Now()
	// A new report does not wait for the backlog.
	fresh := w.change(objects[0])
	w.eventually(waitTimeout, "the change after the outage", func() error { return w.expectVersion(0, fresh.GetResourceVersion()) })
	first := len(w.proxy.accepted()) - taken
	w.Logf("a change right after the outage was reported %s later, among the first %d reports of a backlog of %d Events",
		time.Since(back).Round(time.Millisecond), first, piledUp)
	if first >= piledUp {
		w.Errorf("a change right after the outage came after %d other reports, want it to alternate with the backlog of %d Events", first, piledUp)
	}
	load.stop()
	w.awaitAgreement(waitTimeout)
}

// expectVersion expects the row of a listed object of the first workload to have a version, or a later one.
func (w *world) expectVersion(resource int, version string) error {
	path := rowPath(w.deployed[0], resource)
	want, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return err
	}
	for _, write := range slices.Backward(w.proxy.accepted()) {
		if write.Path != path {
			continue
		}
		var told struct {
			RuntimeDefinition struct {
				Metadata struct{ ResourceVersion string }
			}
		}
		if err := json.Unmarshal(write.Body, &told); err != nil {
			return err
		}
		if got, err := strconv.ParseUint(told.RuntimeDefinition.Metadata.ResourceVersion, 10, 64); err != nil || got < want {
			return errors.Join(err, fmt.Errorf("%s has version %d, want %s", path, got, version))
		}
		return nil
	}
	return fmt.Errorf("there was no write to %s", path)
}

// expectOperation expects the row of a listed object of the first workload to have a last operation.
func (w *world) expectOperation(resource int, want string) error {
	path := rowPath(w.deployed[0], resource)
	for _, write := range slices.Backward(w.proxy.accepted()) {
		if write.Path == path {
			if got := operationIn(write.Body); got != want {
				return fmt.Errorf("%s has operation %s", path, got)
			}
			return nil
		}
	}
	return fmt.Errorf("there was no write to %s", path)
}

// Errors 400 for one object and 500 for another must not delay other objects.
func TestDelivery_RejectedReport_BlocksNoOther(t *testing.T) {
	t.Parallel()
	forEachProtocol(t, rejectedReportBlocksNoOther)
}

func rejectedReportBlocksNoOther(w *world) {
	d := w.deploy("web", configMap("good"), configMap("refused"), configMap("failing"))
	good, refused, failing := w.get(d.Objects[0]), d.Objects[1], d.Objects[2]
	w.awaitAgreement(waitTimeout)
	initial := w.proxy.count(func(r request) bool { return r.writesOnlyTo(rowPath(d, 1)) })
	w.proxy.setScript(func(r request) fault {
		switch {
		case r.writesTo(rowPath(d, 1)):
			return fault{status: http.StatusBadRequest}
		case r.writesTo(rowPath(d, 2)), r.contains("poisonous"):
			return fault{status: http.StatusInternalServerError}
		}
		return fault{}
	})
	w.change(refused)
	w.change(failing)
	w.createEvent(good, "poisonous")
	tries := func() int {
		return w.proxy.count(func(r request) bool { return r.writesTo(rowPath(d, 2)) || r.contains("poisonous") })
	}
	begin, free := time.Now(), 0
	const changes = 40
	for i := range changes {
		before := tries()
		changed := w.change(good)
		w.createEvent(good, fmt.Sprintf("healthy-%d", i))
		w.eventually(waitTimeout, "the change of the good object", func() error { return w.expectVersion(0, changed.GetResourceVersion()) })
		if tries() == before {
			free++
		}
		w.pause(250 * time.Millisecond)
	}
	all := tries()
	refusals := w.proxy.count(func(r request) bool { return r.writesOnlyTo(rowPath(d, 1)) })
	took := time.Since(begin)
	w.Logf("in %s the failing reports were tried %d times, and not while %d of %d changes of the good object waited",
		took.Round(time.Second), all, free, changes)
	if free < changes/4 {
		w.Errorf("%d of %d changes of the good object were reported without an attempt of a failing report, want most of them", free, changes)
	}
	// The backoff begins at up to 0.5 s and doubles up to a minute, with jitter.
	if enough := 2 * (20 + int(took/(15*time.Second))); all < 4 || all > enough {
		w.Errorf("the failing reports were sent %d times, want 4 to %d", all, enough)
	}
	if refusals != initial+1 {
		w.Errorf("the rejected report was sent %d times by itself, want 1", refusals-initial)
	}
	w.expectRejected(d.Name)

	// A rejected report is sent again after its object changes; a failed one is retried anyway.
	w.proxy.setScript(nil)
	w.change(refused)
	w.awaitAgreement(waitTimeout)
}

// expectRejected waits until a workload's status shows a rejected report.
func (w *world) expectRejected(name string) {
	w.Helper()
	w.eventually(waitTimeout, "the rejected report in the workload's status", func() error {
		delivery := w.status(name).Status.Delivery
		if delivery.Rejected == 0 || len(delivery.Rejections) == 0 || !strings.Contains(delivery.Rejections[0].Reason, "injected by the test") {
			return fmt.Errorf("delivery is %+v", delivery)
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
			forEachProtocol(t, func(w *world) {
				load := w.startLoad(seed(w.T), 20, w.deployWeb())
				w.await(waitTimeout, 20, "before the first refusal", request.isWrite)
				for _, seconds := range []int{2, 5} {
					w.expectSilence(status, seconds)
				}
				load.stop()
				w.awaitAgreement(waitTimeout)
			})
		})
	}
}

// expectSilence answers one request with Retry-After, and expects no other until the time is over. Package outbox tests with
// a fake clock when the next one follows.
func (w *world) expectSilence(status, seconds int) {
	w.Helper()
	var refused atomic.Pointer[time.Time]
	header := http.Header{"Retry-After": {fmt.Sprint(seconds)}}
	w.proxy.setScript(func(r request) fault {
		if r.isWrite() && refused.CompareAndSwap(nil, new(time.Now())) {
			return fault{status: status, header: header}
		}
		return fault{}
	})
	w.eventually(waitTimeout, "a request to answer with Retry-After", func() error {
		if refused.Load() == nil {
			return errors.New("there was none")
		}
		return nil
	})
	w.proxy.setScript(nil)
	from, asked := *refused.Load(), time.Duration(seconds)*time.Second
	w.await(waitTimeout, 1, "after the silence", func(r request) bool { return r.at.After(from.Add(asked)) })
	// Requests that were open when the answer came. Without the wait the load would cause 20 requests a second.
	during := w.proxy.sent(func(r request) bool { return r.at.After(from) && r.at.Before(from.Add(asked)) })
	w.Logf("%d with Retry-After %d: %d requests until that was over", status, seconds, len(during))
	if len(during) > maxOpen {
		w.Errorf("there were %d requests in the %d s after %d with Retry-After %d, want at most %d", len(during), seconds, status, seconds, maxOpen)
	}
}
