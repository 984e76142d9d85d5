package kubectl

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
}

// maxHeld bounds the number of objects that wait for related ones. Related objects that are further apart in the input do
// not count for each other.
const maxHeld = 50_000

// assessor assesses a stream of objects and emits the verdicts in the same order. An object without a UID and an owner is
// assessed at once, unless it is an Event. Others wait for related objects. A second object with a UID starts a new
// snapshot: the objects before it are assessed without those after it.
type assessor struct {
	base     health.Context
	emit     func(verdictLine) error
	limit    int
	objects  int
	errors   int
	statuses map[health.Status]int

	// lines are the lines that are not emitted yet.
	lines []verdictLine
	// held has the objects of lines; nil for a line that has its verdict.
	held    []*unstructured.Unstructured
	waiting int                // the number of objects in held that are not nil
	uids    map[types.UID]bool // the UIDs of the waiting objects
}

func newAssessor(hc health.Context) *assessor {
	return &assessor{base: hc, limit: maxHeld, statuses: map[health.Status]int{}, uids: map[types.UID]bool{}}
}

// add adds the object of a document, if it has one.
func (a *assessor) add(d manifest.Document) error {
	if d.Object == nil {
		return nil
	}
	a.objects++
	u := &unstructured.Unstructured{Object: d.Object}
	line := verdictLine{Namespace: u.GetNamespace(), Name: u.GetName(), Kind: u.GetKind(), APIVersion: u.GetAPIVersion()}
	if flaw, ok := d.Err.(*manifest.Flaw); ok { //nolint:errorlint // it is never wrapped
		line.Status, line.Reason, line.Message = health.Unknown, flaw.Reason, flaw.Message
		return a.append(line, nil)
	}
	if u.GroupVersionKind() == v1alpha1.GroupVersion.WithKind("ThreeportWorkload") { // its verdict is the agent's
		wl, err := decodeWorkload(u)
		if err != nil {
			return err
		}
		s := statusOf(&wl)
		line.Status, line.Reason, line.Message = s.Status, s.Reason, s.Message
		return a.append(line, nil)
	}
	uid := u.GetUID()
	if uid == "" && len(u.GetOwnerReferences()) == 0 && u.GetKind() != "Event" {
		line.setVerdict(health.Forest([]*unstructured.Unstructured{u}, a.contextOf(nil))[0].Aggregate.Assessment)
		return a.append(line, nil)
	}
	if uid != "" && a.uids[uid] {
		if err := a.finish(); err != nil {
			return err
		}
	}
	a.uids[uid] = true
	return a.append(line, u)
}

func (v *verdictLine) setVerdict(a health.Assessment) {
	v.Status, v.Reason, v.Message = a.Status, a.Reason, a.Message
}

// append adds a line, with the object if that has to wait.
func (a *assessor) append(line verdictLine, wait *unstructured.Unstructured) error {
	if wait == nil && a.waiting == 0 {
		return a.emitLine(line)
	}
	a.lines, a.held = append(a.lines, line), append(a.held, wait)
	if wait != nil {
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
	var waiting []*unstructured.Unstructured
	var places []int
	for i, u := range a.held {
		if u != nil {
			waiting, places = append(waiting, u), append(places, i)
		}
	}
	for i, joint := range assessTogether(waiting, a.contextOf(warnings(waiting))) {
		a.lines[places[i]].setVerdict(joint)
	}
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

func (a *assessor) contextOf(warnings map[types.UID]health.Warning) func(*unstructured.Unstructured) health.Context {
	return func(u *unstructured.Unstructured) health.Context {
		hc := a.base
		hc.Warning = warnings[u.GetUID()]
		return hc
	}
}

// assessTogether returns the assessments of objects with their descendants. Objects without a UID get one, because Forest
// finds nodes by UID.
func assessTogether(objects []*unstructured.Unstructured, hc func(*unstructured.Unstructured) health.Context) []health.Assessment {
	related := make([]*unstructured.Unstructured, 0, len(objects))
	place := map[*unstructured.Unstructured]int{}
	verdicts := make([]health.Assessment, len(objects))
	for i, u := range objects {
		if u.GetUID() == "" {
			u = u.DeepCopy()
			u.SetUID(types.UID(fmt.Sprintf("document %d", i)))
		}
		place[u] = i
		related = append(related, u)
	}
	queue := health.Forest(related, hc)
	for len(queue) > 0 {
		n := queue[0]
		queue = append(queue[1:], n.Children...)
		verdicts[place[n.Object]] = n.Aggregate.Assessment
	}
	return verdicts
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
	at, err := time.Parse(time.RFC3339, first(text("series", "lastObservedTime"), text("lastTimestamp"), text("deprecatedLastTimestamp"),
		text("eventTime"), text("firstTimestamp"), text("metadata", "creationTimestamp")))
	if err != nil {
		return "", health.Warning{}, false
	}
	return types.UID(uid), health.Warning{Reason: text("reason"), Message: first(text("message"), text("note")), Time: at}, true
}
