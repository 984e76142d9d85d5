package resync

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/notify"
	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/server"
	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// readTime is how long a scripted cluster reads an object.
const readTime = 10 * time.Millisecond

// cluster is a Cluster with scripted states.
type cluster struct {
	mu       sync.Mutex
	states   map[target.Instance]observe.DesiredState // those that are complete
	declared []target.Instance                        // in addition
	failing  error
	unread   int         // the objects that were not read yet
	at       []time.Time // when states were asked for
	stalled  int
	audits   int
}

func newCluster() *cluster { return &cluster{states: map[target.Instance]observe.DesiredState{}} }

func (c *cluster) Instances() []target.Instance {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := slices.AppendSeq(slices.Clone(c.declared), maps.Keys(c.states))
	slices.SortFunc(out, func(a, b target.Instance) int { return strings.Compare(a.String(), b.String()) })
	return out
}

func (c *cluster) DesiredState(_ context.Context, instance target.Instance, readUntil time.Time) (observe.DesiredState, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = append(c.at, time.Now())
	desired, ok := c.states[instance]
	for c.unread > 0 && (readUntil.IsZero() || !time.Now().After(readUntil)) {
		time.Sleep(readTime)
		c.unread--
	}
	return desired, ok && c.failing == nil && c.unread == 0, c.failing
}

func (c *cluster) DetectStalls(context.Context) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.audits++
	return c.stalled, c.failing
}

// times returns when states were read.
func (c *cluster) times() []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.at)
}

// ended returns the number of rounds.
func (c *cluster) ended() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.audits
}

// forget makes the state of an instance incomplete.
func (c *cluster) forget(instance target.Instance) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.states, instance)
}

// edit changes the state of an instance.
func (c *cluster) edit(instance target.Instance, change func(*observe.DesiredState)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	desired := c.states[instance]
	change(&desired)
	c.states[instance] = desired
}

// lines are what was logged.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) logger() logr.Logger {
	return funcr.New(func(_, line string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = append(l.all, line)
	}, funcr.Options{})
}

func (l *lines) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(strings.Join(l.all, "\n"), text)
}

// world is a resyncer with a scripted cluster, a real outbox and the reference API.
type world struct {
	*Resyncer
	t        *testing.T
	box      *outbox.Outbox
	cluster  *cluster
	client   *threeport.Client
	api      *notify.V0Sender
	registry *prometheus.Registry
	logs     lines
	url      string
	instance target.Instance

	mu       sync.Mutex
	requests []string                                                    // METHOD /v0/… without the query
	before   func(w http.ResponseWriter, r *http.Request) (handled bool) // called for each
}

// newWorld is a world with the API in its strict mode.
func newWorld(t *testing.T) *world {
	t.Helper()
	opened, err := store.Open(t.Context(), store.Config{Address: "sqlite::memory:", StrictV0: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	return newWorldWith(t, server.Handler(opened, slog.New(slog.DiscardHandler)))
}

func newWorldWith(t *testing.T, handler http.Handler) *world {
	t.Helper()
	w := &world{t: t, cluster: newCluster(), registry: prometheus.NewRegistry()}
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.requests = append(w.requests, r.Method+" "+r.URL.Path)
		before := w.before
		w.mu.Unlock()
		if before != nil && r.Header.Get("X-By-Hand") == "" && before(rw, r) {
			return
		}
		handler.ServeHTTP(rw, r)
	}))
	w.url = api.URL
	var err error
	if w.client, err = threeport.New(threeport.Config{Server: api.URL, Timeout: threeport.DefaultTimeout}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.client.Close()
		api.Close()
	})
	w.api = notify.NewV0Sender(w.client)
	w.restart()
	w.instance = target.Instance{Type: target.WorkloadInstance, ID: w.create("workload-instances", `{"Name":"shop"}`)}
	w.cluster.edit(w.instance, func(*observe.DesiredState) {})
	return w
}

// restart gives the world an empty outbox.
func (w *world) restart() {
	config := outbox.DefaultConfig()
	config.Protocol, config.InitialSync = notify.ProtocolV0, true
	w.box = outbox.New(config, nil)
	w.registry = prometheus.NewRegistry()
	w.Resyncer = New(DefaultConfig(), w.cluster, untracked, w.box, w.client, NewMetrics(w.registry), w.logs.logger())
}

// call makes a request by hand, and returns the rows of the answer.
func (w *world) call(method, path, body string) []map[string]any {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.url+"/v0/"+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-By-Hand", "yes")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }() // the answer was read
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		w.t.Fatalf("%s %s: %d %s %v", method, path, resp.StatusCode, answer, err)
	}
	var envelope struct{ Data []map[string]any }
	decoder := json.NewDecoder(strings.NewReader(string(answer)))
	decoder.UseNumber()
	if err := decoder.Decode(&envelope); err != nil {
		w.t.Fatal(err)
	}
	http.DefaultClient.CloseIdleConnections()
	return envelope.Data
}

func (w *world) create(path, body string) int64 {
	w.t.Helper()
	id, err := w.call("POST", path, body)[0]["ID"].(json.Number).Int64()
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

// resource creates the row of a listed ConfigMap, and returns its attribution.
func (w *world) resource(name string) target.Attribution {
	w.t.Helper()
	id := w.create("workload-resource-instances", fmt.Sprintf(`{"JSONDefinition":{"hush":"hush"},"WorkloadInstanceID":%d}`, w.instance.ID))
	ref := target.Ref{Kind: "ConfigMap", Namespace: "app", Name: name}
	return target.Attribution{Workload: "shop", Instance: w.instance, Listed: true, Resource: target.Resource{Ref: ref, Version: "v1", ID: id}}
}

// operation is one of a ConfigMap.
func operation(attribution target.Attribution, uid types.UID, version string) observe.Operation {
	body := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{
			"name": attribution.Resource.Name, "namespace": "app", "uid": string(uid), "resourceVersion": version,
		},
		"data": map[string]any{"word": "hush\x00", "number": int64(1)<<53 + 1, "half": 1e21},
	}}
	return observe.Operation{
		Attribution: attribution, Object: target.Identity{Ref: attribution.Resource.Ref, UID: uid}, ResourceVersion: version, Body: body,
	}
}

// definition is the body of an operation as JSON.
func definition(t *testing.T, op observe.Operation) string {
	t.Helper()
	raw, err := op.Definition()
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(raw), `\u0000`, `\ufffd`)
}

func event(instance target.Instance, uid, version string, at time.Time) observe.Event {
	return observe.Event{
		Workload: instance, UID: types.UID(uid), ResourceVersion: version, Type: "Normal", Reason: "Created",
		Message: "hush " + version, Time: at, Involved: target.Ref{Kind: "Pod", Namespace: "app", Name: "web"},
	}
}

// eventBody is the row of an Event as JSON.
func eventBody(t *testing.T, ev observe.Event) string {
	t.Helper()
	body, err := json.Marshal(notify.EventRow(ev))
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// offer offers all reports of the desired state.
func (w *world) offer() {
	desired, _, _ := w.cluster.DesiredState(context.Background(), w.instance, time.Time{})
	for _, op := range desired.Operations {
		w.box.Offer(op)
	}
	for _, ev := range desired.Events {
		w.box.Offer(ev)
	}
	if desired.Status.Status != "" {
		w.box.Offer(desired.Status)
	}
}

// dueNow is a context that ends at the second check: with it [outbox.Outbox.NextBatch] returns a report that is ready, and does
// not wait.
type dueNow struct{ asked bool }

func (*dueNow) Deadline() (time.Time, bool) { return time.Time{}, false }
func (*dueNow) Value(any) any               { return nil }

func (*dueNow) Done() <-chan struct{} {
	over := make(chan struct{})
	close(over)
	return over
}

func (n *dueNow) Err() error {
	if n.asked {
		return context.DeadlineExceeded
	}
	n.asked = true
	return nil
}

// syncNow makes all pending initial syncs, and leaves other reports.
func (w *world) syncNow() {
	w.t.Helper()
	var rest []outbox.Item
	for tries := 0; ; {
		items, err := w.box.NextBatch(&dueNow{}, 1)
		if err != nil {
			break
		}
		item := items[0]
		initial, ok := item.Report.(outbox.InitialSync)
		if !ok {
			rest = append(rest, item)
			continue
		}
		tries++
		if err := w.InitialSync(w.t.Context(), initial.Workload, tries); err == nil {
			w.box.Ack(item, outbox.Receipt{})
		} else if w.box.Defer(item, 0, err); tries > maxAttempts {
			w.t.Fatalf("the initial sync failed: %v", err)
		}
	}
	for _, item := range rest {
		w.box.Defer(item, 0, nil)
	}
}

// deliver sends all reports that are ready. It returns the requests that changed something.
func (w *world) deliver() []string {
	w.t.Helper()
	w.mu.Lock()
	w.requests = nil
	w.mu.Unlock()
	for {
		items, err := w.box.NextBatch(&dueNow{}, 1)
		if err != nil {
			return w.writes()
		}
		item := items[0]
		receipt, err := w.api.Send(w.t.Context(), item)
		if err != nil {
			w.t.Fatalf("send %s: %v", item.Report, err)
		}
		w.box.Ack(item, receipt)
	}
}

// writes returns the requests that changed something.
func (w *world) writes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.requests), func(r string) bool { return strings.HasPrefix(r, "GET ") })
}

// audit makes a diff and a recheck without the wait in between, and returns what was repaired.
func (w *world) audit() float64 {
	w.t.Helper()
	before := w.repairs("operation") + w.repairs("event") + w.repairs("status")
	found, err := w.diff(w.t.Context(), w.instance)
	if err == nil {
		err = w.repairAgain(w.t.Context(), w.instance, found)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return w.repairs("operation") + w.repairs("event") + w.repairs("status") - before
}

func (w *world) repairs(kind string) float64 {
	return metric(w.t, w.registry, "threeport_agent_audit_repairs_total", kind)
}

func (w *world) rows() []map[string]any {
	w.t.Helper()
	return w.call("GET", fmt.Sprintf("workload-events?workloadinstanceid=%d&size=-1", w.instance.ID), "")
}

func (w *world) row(attribution target.Attribution) map[string]any {
	w.t.Helper()
	return w.call("GET", fmt.Sprintf("workload-resource-instances/%d", attribution.Resource.ID), "")[0]
}

// metric returns the value of a counter or gauge with a label's value.
func metric(t *testing.T, registry *prometheus.Registry, name string, label ...string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			if len(label) == 0 || m.GetLabel()[0].GetValue() == label[0] {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("there is no metric %s %v", name, label)
	return 0
}

// peek returns the LastOperation of a request's body, which can be read again.
func (w *world) peek(r *http.Request) string {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.t.Error(err)
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	var row struct{ LastOperation string }
	if err := json.Unmarshal(body, &row); err != nil {
		w.t.Error(err)
	}
	return row.LastOperation
}
