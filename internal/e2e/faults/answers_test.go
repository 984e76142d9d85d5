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

// Three in ten answers are lost after the control plane did what it was asked for: a POST that is simply repeated makes
// a second row.
func TestDelivery_AnswersLost(t *testing.T) {
	t.Parallel()
	inBothWays(t, lostAnswers)
}

func lostAnswers(w *world) {
	random := seed(w.T)
	objects := w.deployWeb()
	// Adoption takes several reads one after the other, which rarely all come through then.
	w.await(patience, 1, "before answers are lost", func(r request) bool { return r.accepted && r.tellsOf(upstream.WorkloadResourceInstances) })
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
	w.let(20 * time.Second)
	w.eventually(patience, "many answers to be lost and some to be cut", func() error {
		w.proxy.mu.Lock()
		defer w.proxy.mu.Unlock()
		if lost < 50 || cut < 10 {
			return fmt.Errorf("%d were lost and %d cut", lost, cut)
		}
		return nil
	})
	load.stop()
	// Lost answers go on while the rest is delivered.
	w.agree(patience)
	w.proxy.setScript(nil)
	w.Logf("%d answers were lost and %d cut, of %d", lost, cut, w.proxy.count(anyRequest))
}

// While the control plane is down for two minutes the cluster goes on. The agent asks now and then whether it is back.
func TestDelivery_ControlPlaneDown(t *testing.T) {
	t.Parallel()
	inBothWays(t, controlPlaneDown)
}

func controlPlaneDown(w *world) {
	objects := w.deployWeb()
	load := w.startLoad(seed(w.T), 20, objects)
	w.await(patience, 20, "before the outage", request.write)
	before, seen := w.proxy.count(anyRequest), w.oracle.EventCount()
	// Half of the time it answers with 503, and then not at all.
	w.proxy.setScript(func(request) fault { return fault{status: http.StatusServiceUnavailable} })
	w.let(60 * time.Second)
	during := w.proxy.count(anyRequest) - before
	w.Logf("there were %d requests in a minute of 503", during)
	if during > 120 {
		w.Errorf("there were %d requests while the control plane answered with 503 for a minute, expected a few that try", during)
	}
	w.toAPI.down()
	w.let(60 * time.Second)
	piledUp, taken := w.oracle.EventCount()-seen, len(w.proxy.accepted())
	w.toAPI.up()
	w.proxy.setScript(nil)
	back := time.Now()
	// What is fresh does not wait until what has piled up is through.
	fresh := w.change(objects[0])
	w.eventually(patience, "what changed after the outage", func() error { return w.has(0, fresh.GetResourceVersion()) })
	first := len(w.proxy.accepted()) - taken
	w.Logf("a change right after the outage was reported %s later, among the first %d of what %d Events had piled up",
		time.Since(back).Round(time.Millisecond), first, piledUp)
	if first >= piledUp {
		w.Errorf("a change right after the outage came after %d other reports, expected it to take turns with the %d Events of before", first, piledUp)
	}
	load.stop()
	w.agree(patience)
}

// has expects that the control plane has a version of a listed object, or a later one, of those of the first workload.
func (w *world) has(resource int, version string) error {
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
			return errors.Join(err, fmt.Errorf("%s was told of version %d, not of %s", path, got, version))
		}
		return nil
	}
	return fmt.Errorf("%s was not told of anything", path)
}

// hasOperation expects that the control plane has an operation of a listed object, of those of the first workload.
func (w *world) hasOperation(resource int, want string) error {
	path := rowPath(w.deployed[0], resource)
	for _, write := range slices.Backward(w.proxy.accepted()) {
		if write.Path == path {
			if got := operationIn(write.Body); got != want {
				return fmt.Errorf("%s was told %s", path, got)
			}
			return nil
		}
	}
	return fmt.Errorf("%s was not told of anything", path)
}

// 400 for one object and 500 for another concern nobody else.
func TestDelivery_RejectedReport_BlocksNoOther(t *testing.T) {
	t.Parallel()
	inBothWays(t, poisonBlocksNothing)
}

func poisonBlocksNothing(w *world) {
	d := w.deploy("web", configMap("good"), configMap("refused"), configMap("failing"))
	good, refused, failing := w.get(d.Objects[0]), d.Objects[1], d.Objects[2]
	w.agree(patience)
	initial := w.proxy.count(func(r request) bool { return r.tellsOnly(rowPath(d, 1)) })
	w.proxy.setScript(func(r request) fault {
		switch {
		case r.tells(rowPath(d, 1)):
			return fault{status: http.StatusBadRequest}
		case r.tells(rowPath(d, 2)), r.says("poisonous"):
			return fault{status: http.StatusInternalServerError}
		}
		return fault{}
	})
	w.change(refused)
	w.change(failing)
	w.happen(good, "poisonous")
	tries := func() int {
		return w.proxy.count(func(r request) bool { return r.tells(rowPath(d, 2)) || r.says("poisonous") })
	}
	begin, free := time.Now(), 0
	const changes = 40
	for i := range changes {
		before := tries()
		changed := w.change(good)
		w.happen(good, fmt.Sprintf("healthy-%d", i))
		w.eventually(patience, "the change of the good object", func() error { return w.has(0, changed.GetResourceVersion()) })
		if tries() == before {
			free++
		}
		w.let(250 * time.Millisecond)
	}
	all := tries()
	refusals := w.proxy.count(func(r request) bool { return r.tellsOnly(rowPath(d, 1)) })
	took := time.Since(begin)
	w.Logf("in %s the failing reports were tried %d times, and not while %d of %d changes of the good object waited",
		took.Round(time.Second), all, free, changes)
	if free < changes/4 {
		w.Errorf("%d of %d changes of the good object were reported without a try of what fails, expected most to overtake it", free, changes)
	}
	// Each after 0.5 s at most, then after up to twice as long as before, but a minute. The waits are random.
	if enough := 2 * (20 + int(took/(15*time.Second))); all < 4 || all > enough {
		w.Errorf("the failing reports were tried %d times, expected 4 to %d", all, enough)
	}
	if refusals != initial+1 {
		w.Errorf("the report that was refused was sent %d times by itself, expected once", refusals-initial)
	}
	w.expectRejected(d.Name)

	// What was refused is tried again when the object changes; what failed, by itself.
	w.proxy.setScript(nil)
	w.change(refused)
	w.agree(patience)
}

// expectRejected waits until a workload's status shows a report that was refused.
func (w *world) expectRejected(name string) {
	w.Helper()
	w.eventually(patience, "the refused report in the workload's status", func() error {
		delivery := w.status(name).Status.Delivery
		if delivery.Rejected == 0 || len(delivery.Rejections) == 0 || !strings.Contains(delivery.Rejections[0].Reason, "injected by the test") {
			return fmt.Errorf("delivery is %+v", delivery)
		}
		return nil
	})
}

// After an answer with Retry-After there is nothing before the time is over, and then something.
func TestDelivery_RetryAfter(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			inBothWays(t, func(w *world) {
				load := w.startLoad(seed(w.T), 20, w.deployWeb())
				w.await(patience, 20, "before the first refusal", request.write)
				for _, seconds := range []int{2, 5} {
					w.expectSilence(status, seconds)
				}
				load.stop()
				w.agree(patience)
			})
		})
	}
}

// expectSilence refuses one request with Retry-After, and expects none until that is over. How soon one follows then is
// tested where time is not the machine's, in package outbox.
func (w *world) expectSilence(status, seconds int) {
	w.Helper()
	var refused atomic.Pointer[time.Time]
	header := http.Header{"Retry-After": {fmt.Sprint(seconds)}}
	w.proxy.setScript(func(r request) fault {
		if r.write() && refused.CompareAndSwap(nil, new(time.Now())) {
			return fault{status: status, header: header}
		}
		return fault{}
	})
	w.eventually(patience, "a request that is refused", func() error {
		if refused.Load() == nil {
			return errors.New("there was none")
		}
		return nil
	})
	w.proxy.setScript(nil)
	from, asked := *refused.Load(), time.Duration(seconds)*time.Second
	w.await(patience, 1, "after the silence", func(r request) bool { return r.at.After(from.Add(asked)) })
	// Those were on their way when the answer came, one for each that may be. Of the load there would be 20 a second.
	during := w.proxy.sent(func(r request) bool { return r.at.After(from) && r.at.Before(from.Add(asked)) })
	w.Logf("%d with Retry-After %d: %d requests until that was over", status, seconds, len(during))
	if len(during) > maxOpen {
		w.Errorf("there were %d requests in the %d s after %d with Retry-After %d, expected at most %d", len(during), seconds, status, seconds, maxOpen)
	}
}
