package kubectl

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/health"
	"github.com/threeport/threeport-agent/internal/kubectl/manifest"
)

// verdictLine is the verdict on an object, as -o json prints it.
type verdictLine struct {
	APIVersion string        `json:"apiVersion"`
	Kind       string        `json:"kind"`
	Namespace  string        `json:"namespace"`
	Name       string        `json:"name"`
	Status     health.Status `json:"status"`
	Reason     string        `json:"reason"`
	Message    string        `json:"message"`
	// AsOf is the time of the assessment, in RFC 3339.
	AsOf string `json:"asOf"`
	// Explanation is how the verdict came about, with --explain.
	Explanation *explanation `json:"explanation,omitempty"`
}

// explanation is how a verdict came about.
type explanation struct {
	// DecidedBy is the rule or the convention.
	DecidedBy string `json:"decidedBy"`
	// Fields are the fields that were read, with their values or meanings.
	Fields []string `json:"fields"`
	// Derived is how the derived objects change the verdict on the object; empty if they do not.
	Derived string `json:"derived,omitempty"`
}

// maxHeld bounds the number of objects that wait for related ones. Related objects that are further apart in the input do
// not count for each other.
const maxHeld = 50_000

// assessor assesses a stream of objects and emits the verdicts in the same order. An object without a UID and an owner is
// assessed at once, unless it is an Event. Others wait for related objects. A second object with a UID starts a new
// snapshot: the objects before it are assessed without those after it.
type assessor struct {
	rules    health.Rules
	clock    clock
	explain  bool
	emit     func(verdictLine) error
	fail     func(error) // is called for the error of each document
	limit    int
	objects  int
	errors   int
	statuses map[health.Status]int

	// lines are the lines that are not emitted yet.
	lines []verdictLine
	// held has the objects of lines; the object is nil for a line that has its verdict.
	held    []heldObject
	waiting int                // the number of objects in held that are not nil
	uids    map[types.UID]bool // the UIDs of the waiting objects
}

// heldObject is an object that waits for related ones, with the file that has it.
type heldObject struct {
	*unstructured.Unstructured
	source string
}

func newAssessor(rules health.Rules, clock clock) *assessor {
	return &assessor{rules: rules, clock: clock, limit: maxHeld, statuses: map[health.Status]int{}, uids: map[types.UID]bool{}}
}

// reject counts an error of a document or a file.
func (a *assessor) reject(err error) {
	a.errors++
	a.fail(err)
}

// add adds the object of a document, if it has one, and rejects the document if it has an error. It returns only errors of emit.
func (a *assessor) add(d manifest.Document) error {
	wl := workloadOf(&d)
	if d.Err != nil {
		a.reject(fmt.Errorf("%s: %w", d.Place(), d.Err))
	}
	if d.Object == nil {
		return nil
	}
	a.objects++
	a.clock.read(d.Source, d.Object)
	u := &unstructured.Unstructured{Object: d.Object}
	line := verdictLine{Namespace: u.GetNamespace(), Name: u.GetName(), Kind: u.GetKind(), APIVersion: u.GetAPIVersion()}
	if flaw, ok := d.Err.(*manifest.Flaw); ok { //nolint:errorlint // it is never wrapped
		line.Status, line.Reason, line.Message = health.Unknown, flaw.Reason, flaw.Message
		line.AsOf = a.clock.now(d.Source).Format(time.RFC3339)
		return a.append(line, heldObject{})
	}
	if wl != nil { // its verdict is the agent's
		s := statusOf(wl)
		line.Status, line.Reason, line.Message = s.Status, s.Reason, s.Message
		line.AsOf = a.clock.now(d.Source).Format(time.RFC3339)
		return a.append(line, heldObject{})
	}
	uid := u.GetUID()
	if uid == "" && len(u.GetOwnerReferences()) == 0 && u.GetKind() != "Event" {
		a.assessTogether([]*verdictLine{&line}, []heldObject{{u, d.Source}})
		return a.append(line, heldObject{})
	}
	if uid != "" && a.uids[uid] {
		if err := a.finish(); err != nil {
			return err
		}
	}
	a.uids[uid] = true
	return a.append(line, heldObject{u, d.Source})
}

// workloadOf returns the ThreeportWorkload of a document; nil if it has none. A malformed one is a flaw of the document.
func workloadOf(d *manifest.Document) *v1alpha1.ThreeportWorkload {
	u := &unstructured.Unstructured{Object: d.Object}
	if d.Err != nil || u.GroupVersionKind() != v1alpha1.GroupVersion.WithKind("ThreeportWorkload") {
		return nil
	}
	wl := &v1alpha1.ThreeportWorkload{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, wl); err != nil {
		d.Err = &manifest.Flaw{Reason: "Malformed", Message: fmt.Sprintf("ThreeportWorkload %s cannot be decoded: %v", u.GetName(), err)}
		return nil
	}
	return wl
}

// append adds a line, with the object if that has to wait.
func (a *assessor) append(line verdictLine, wait heldObject) error {
	if wait.Unstructured == nil && a.waiting == 0 {
		return a.emitLine(line)
	}
	a.lines, a.held = append(a.lines, line), append(a.held, wait)
	if wait.Unstructured != nil {
		a.waiting++
	}
	if len(a.lines) >= a.limit {
		return a.finish()
	}
	return nil
}

func (a *assessor) emitLine(line verdictLine) error {
	a.statuses[line.Status]++
	return a.emit(line)
}

// finish assesses the waiting objects and emits their lines.
func (a *assessor) finish() error {
	var waiting []heldObject
	var open []*verdictLine
	for i, held := range a.held {
		if held.Unstructured != nil {
			waiting, open = append(waiting, held), append(open, &a.lines[i])
		}
	}
	a.assessTogether(open, waiting)
	lines := a.lines
	a.lines, a.held, a.waiting, a.uids = nil, nil, 0, map[types.UID]bool{}
	for _, line := range lines {
		if err := a.emitLine(line); err != nil {
			return err
		}
	}
	return nil
}

// worst returns the worst status that is not accepted, which decides the exit code.
func (a *assessor) worst(accept acceptance) health.Status {
	for _, status := range statuses {
		if a.statuses[status] > 0 && accept.code(status) != exitHealthy {
			return status
		}
	}
	return health.Healthy
}

// assessTogether sets the verdicts on objects with their descendants in their lines. Objects without a UID get one, because Forest finds
// nodes by UID.
func (a *assessor) assessTogether(lines []*verdictLine, objects []heldObject) {
	related := make([]*unstructured.Unstructured, 0, len(objects))
	place := map[*unstructured.Unstructured]int{}
	for i, held := range objects {
		u := held.Unstructured
		if u.GetUID() == "" {
			u = u.DeepCopy()
			u.SetUID(types.UID(fmt.Sprintf("document %d", i)))
		}
		place[u] = i
		related = append(related, u)
	}
	warnings, traces := warnings(related), map[*unstructured.Unstructured]*health.Trace{}
	queue := health.Forest(related, func(u *unstructured.Unstructured) health.Context {
		if a.explain {
			traces[u] = &health.Trace{}
		}
		return health.Context{Now: a.clock.now(objects[place[u]].source), Rules: a.rules, Warning: warnings[u.GetUID()], Trace: traces[u]}
	})
	for len(queue) > 0 {
		n := queue[0]
		queue = append(queue[1:], n.Children...)
		i := place[n.Object]
		lines[i].set(n, a.clock.now(objects[i].source), traces[n.Object])
	}
}

// set sets the verdict on an object with its descendants. trace is nil without --explain.
func (v *verdictLine) set(n *health.Node, now time.Time, trace *health.Trace) {
	v.Status, v.Reason, v.Message = n.Aggregate.Status, n.Aggregate.Reason, n.Aggregate.Message
	v.AsOf = now.Format(time.RFC3339)
	if trace == nil {
		return
	}
	v.Explanation = &explanation{DecidedBy: trace.By, Fields: trace.Fields}
	if self := n.Self; self.Status != n.Aggregate.Status || self.Reason != n.Aggregate.Reason {
		v.Explanation.Derived = strings.TrimSpace(fmt.Sprintf("%s %s", self.Status, self.Reason)) + " by itself; its derived objects count too"
	}
}

// warnings returns the latest Warning about each object by UID, from the Events among some objects.
func warnings(objects []*unstructured.Unstructured) map[types.UID]health.Warning {
	latest := map[types.UID]health.Warning{}
	for _, u := range objects {
		if u.GetKind() != "Event" {
			continue
		}
		uid, warning, ok := warningOf(u.Object)
		if ok && !warning.Time.Before(latest[uid].Time) {
			latest[uid] = warning
		}
	}
	return latest
}

// warningOf reads an Event of core/v1 or events.k8s.io/v1; false if it is not of type Warning.
func warningOf(event map[string]any) (types.UID, health.Warning, bool) {
	text := func(path ...string) string {
		s, _, _ := unstructured.NestedString(event, path...)
		return s
	}
	first := func(texts ...string) string {
		for _, s := range texts {
			if s != "" {
				return s
			}
		}
		return ""
	}
	uid := first(text("involvedObject", "uid"), text("regarding", "uid"))
	if text("type") != "Warning" || uid == "" {
		return "", health.Warning{}, false
	}
	at, ok := health.ParseTime(first(text("series", "lastObservedTime"), text("lastTimestamp"), text("deprecatedLastTimestamp"),
		text("eventTime"), text("firstTimestamp"), text("metadata", "creationTimestamp")))
	if !ok {
		return "", health.Warning{}, false
	}
	return types.UID(uid), health.Warning{Reason: text("reason"), Message: first(text("message"), text("note")), Time: at}, true
}
