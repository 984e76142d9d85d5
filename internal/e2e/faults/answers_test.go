package faults

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Three in ten answers are lost after the control plane did what it was asked for: a POST that is simply repeated makes
// a second row.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	random := seed(t)
	objects := w.deployWeb()
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
	load := w.startLoad(seed(t), 20, objects)
	w.let(20 * time.Second)
	w.eventually(2*time.Minute, "many answers to be lost and some to be cut", func() error {
		w.proxy.mu.Lock()
		defer w.proxy.mu.Unlock()
		if lost < 50 || cut < 10 {
			return fmt.Errorf("%d were lost and %d cut", lost, cut)
		}
		return nil
	})
	load.stop()
	// Lost answers go on while the rest is delivered.
	w.agree(90 * time.Second)
	w.proxy.setScript(nil)
	t.Logf("%d answers were lost and %d cut, of %d", lost, cut, w.proxy.count(anyRequest))
}

// While the control plane is down for two minutes the cluster goes on. The agent asks now and then whether it is back.
func TestControlPlaneDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	objects := w.deployWeb()
	load := w.startLoad(seed(t), 20, objects)
	w.await(30*time.Second, 20, "before the outage", request.write)
	before := w.proxy.count(anyRequest)
	// Half of the time it answers with 503, and then not at all.
	w.proxy.setScript(func(request) fault { return fault{status: http.StatusServiceUnavailable} })
	w.let(60 * time.Second)
	during := w.proxy.count(anyRequest) - before
	t.Logf("there were %d requests in a minute of 503", during)
	if during > 120 {
		t.Errorf("there were %d requests while the control plane answered with 503 for a minute, expected a few that try", during)
	}
	w.toAPI.down()
	w.let(60 * time.Second)
	w.toAPI.up()
	w.proxy.setScript(nil)
	back := time.Now()
	// What is fresh does not wait for what has piled up.
	fresh := w.change(objects[0])
	w.eventually(70*time.Second, "what changed after the outage", func() error { return w.has(0, fresh.GetResourceVersion()) })
	t.Logf("a change right after the outage was reported %s later", time.Since(back).Round(time.Millisecond))
	load.stop()
	w.agree(90 * time.Second)
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
func TestPoisonBlocksNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deploy("web", configMap("good"), configMap("refused"), configMap("failing"))
	good, refused, failing := w.get(d.Objects[0]), d.Objects[1], d.Objects[2]
	w.agree(30 * time.Second)
	w.proxy.setScript(func(r request) fault {
		switch {
		case r.path == rowPath(d, 1):
			return fault{status: http.StatusBadRequest}
		case r.path == rowPath(d, 2), strings.Contains(string(r.body), "poisonous"):
			return fault{status: http.StatusInternalServerError}
		}
		return fault{}
	})
	before := w.proxy.count(anyRequest)
	w.change(refused)
	w.change(failing)
	w.happen(good, "poisonous")
	begin := time.Now()
	var slowest time.Duration
	for i := range 40 {
		at := time.Now()
		changed := w.change(good)
		w.happen(good, fmt.Sprintf("healthy-%d", i))
		w.eventually(10*time.Second, "the change of the good object", func() error { return w.has(0, changed.GetResourceVersion()) })
		slowest = max(slowest, time.Since(at))
		w.let(250 * time.Millisecond)
	}
	if slowest > 3*time.Second {
		t.Errorf("a change of the good object took %s to be reported", slowest)
	}
	count := func(matches func(request) bool) int {
		n := 0
		for _, r := range w.proxy.sent(anyRequest)[before:] {
			if matches(r) {
				n++
			}
		}
		return n
	}
	refusals := count(func(r request) bool { return r.path == rowPath(d, 1) })
	failures := count(func(r request) bool { return r.path == rowPath(d, 2) })
	t.Logf("in %s the good object's slowest change took %s; there were %d requests for the refused object, %d for the failing one",
		time.Since(begin).Round(time.Second), slowest.Round(time.Millisecond), refusals, failures)
	if refusals != 1 {
		t.Errorf("the report that was refused was sent %d times, expected once", refusals)
	}
	if failures < 2 || failures > 15 {
		t.Errorf("the report that fails was sent %d times, expected a few", failures)
	}
	w.expectRejected(d.Name)

	// What was refused is tried again when the object changes; what failed, by itself.
	w.proxy.setScript(nil)
	w.change(refused)
	w.agree(90 * time.Second)
}

// expectRejected waits until a workload's status shows a report that was refused.
func (w *world) expectRejected(name string) {
	w.Helper()
	w.eventually(15*time.Second, "the refused report in the workload's status", func() error {
		delivery := w.status(name).Status.Delivery
		if delivery.Rejected == 0 || len(delivery.Rejections) == 0 || !strings.Contains(delivery.Rejections[0].Reason, "injected by the test") {
			return fmt.Errorf("delivery is %+v", delivery)
		}
		return nil
	})
}

// After an answer with Retry-After there is nothing before the time is over, and something soon after.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			objects := w.deployWeb()
			load := w.startLoad(seed(t), 20, objects)
			w.await(30*time.Second, 20, "before the first refusal", request.write)
			for _, seconds := range []int{2, 5} {
				w.expectSilence(status, seconds)
			}
			load.stop()
			w.agree(60 * time.Second)
		})
	}
}

// expectSilence refuses one request with Retry-After, and expects none until that is over.
func (w *world) expectSilence(status, seconds int) {
	w.Helper()
	var refused time.Time
	header := http.Header{"Retry-After": {fmt.Sprint(seconds)}}
	w.proxy.setScript(func(r request) fault {
		if !r.write() || time.Since(refused) < time.Duration(seconds)*time.Second {
			return fault{}
		}
		if refused.IsZero() {
			refused = time.Now()
			return fault{status: status, header: header}
		}
		return fault{}
	})
	w.await(30*time.Second, 1, "that is refused", func(request) bool { return !refused.IsZero() })
	asked := time.Duration(seconds) * time.Second
	// What was on its way when the answer came is none of it; on a busy machine that takes a while. Without the silence
	// there would be 20 a second after that, too.
	const onItsWay = time.Second
	after := func(r request) bool { return r.at.After(refused.Add(onItsWay)) }
	w.await(asked+10*time.Second, 1, "after the silence", after)
	first := w.proxy.sent(after)[0].at.Sub(refused)
	w.Logf("%d with Retry-After %d: the next request came %s later", status, seconds, first.Round(time.Millisecond))
	if first < asked || first > asked+2*time.Second {
		w.Errorf("the next request after %d with Retry-After %d came %s later", status, seconds, first)
	}
	w.proxy.setScript(nil)
}
