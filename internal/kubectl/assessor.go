package kubectl

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

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

// maxHeld is how many objects are kept at a time because others may descend from them. In a longer input, objects
// that are further apart do not count for each other.
const maxHeld = 50_000

// assessor judges objects one after the other, and emits the verdicts in that order. What has neither a UID nor an
// owner, and is no Event, is judged at once; the others wait for those that may be related. An object that comes again is one of another
// moment: what was before it is judged without what comes after it.
type assessor struct {
	base     health.Context
	emit     func(verdictLine) error
	limit    int
	objects  int
	errors   int
	statuses map[health.Status]int

	lines   []verdictLine                // of the objects that wait, and of those behind them
	held    []*unstructured.Unstructured // by place in lines; nil if it is judged
	waiting int                          // how many are not
	uids    map[types.UID]bool           // of those
}

func newAssessor(hc health.Context) *assessor {
	return &assessor{base: hc, limit: maxHeld, statuses: map[health.Status]int{}, uids: map[types.UID]bool{}}
}

// add judges the object of a document, if it has one.
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

// append puts in a line, with the object if that is to be judged later.
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

// finish judges what waits.
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

// worst returns the status that decides about the exit code: the worst that is not accepted.
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

// assessTogether returns the joint verdicts on objects. Those that have no UID get one, by which their kin knows them.
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

// warnings returns the latest Event of type Warning about each object, among some objects.
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

// warningOf reads an Event of core/v1 or of events.k8s.io/v1; false if it is none of type Warning.
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
