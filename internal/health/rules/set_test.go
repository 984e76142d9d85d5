package rules

import (
	"encoding/json"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/health"
)

var (
	now    = time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	widget = schema.GroupKind{Group: "example.org", Kind: "Widget"}
)

// widgetRule returns a rule for Widgets with checks and further lines of YAML.
func widgetRule(checks string, more ...string) string {
	return "rules:\n- group: example.org\n  kinds: [Widget]\n" + strings.Join(more, "\n") + "\n  checks:\n" + checks + "\n"
}

func parse(t *testing.T, text string) *Set {
	t.Helper()
	s, err := Parse(File{"rules.yaml", []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var u unstructured.Unstructured
	if err := u.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return u.Object
}

// with returns a Widget with additional fields.
func with(t *testing.T, fields string) map[string]any {
	t.Helper()
	o := object(t, `{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"w","generation":3,"creationTimestamp":"2026-01-01T09:00:00Z"}}`)
	var more map[string]any
	if err := json.Unmarshal([]byte("{"+fields+"}"), &more); err != nil {
		t.Fatal(err)
	}
	maps.Copy(o, more)
	return o
}

func TestSetJudge(t *testing.T) {
	const ready = `
  - when: isTrue(object, 'Ready')
    status: Healthy
  - when: isFalse(object, 'Ready')
    condition: Ready
    status: Unhealthy
    reason: NotReady
    message: is not ready
  else: {status: Unknown, reason: NoSignal, message: says nothing}`
	one := func(when string) string {
		return widgetRule("  - {when: \"" + when + "\", status: Healthy}\n  else: {status: Down, reason: No, message: is not}")
	}
	for _, c := range []struct {
		reason, rules, fields string
		status                health.Status
		word, message         string
	}{
		{"a condition is true", widgetRule(ready), `"status":{"conditions":[{"type":"Ready","status":"True"}]}`, health.Healthy, "", ""},
		{"a condition has a reason and a message", widgetRule(ready), `"status":{"conditions":[{"type":"Ready","status":"False","reason":"NoDisk","message":"There is no\n disk."}]}`, health.Unhealthy, "NoDisk", "Widget w is not ready: There is no disk"},
		{"a reason that is no word", widgetRule(ready), `"status":{"conditions":[{"type":"Ready","status":"False","reason":"no disk"}]}`, health.Unhealthy, "NotReady", "Widget w is not ready"},
		{"a condition of an earlier generation", widgetRule(ready), `"status":{"conditions":[{"type":"Ready","status":"True","observedGeneration":2}]}`, health.Unknown, "NoSignal", "Widget w says nothing"},
		{"no status", widgetRule(ready), ``, health.Unknown, "NoSignal", ""},
		{"null as the status", widgetRule(ready), `"status":null`, health.Unknown, "NoSignal", ""},
		{"the generation is not observed", widgetRule(ready), `"status":{"observedGeneration":2,"conditions":[{"type":"Ready","status":"True"}]}`, health.Reconciling, "SpecNotObserved", "has not seen the latest spec"},
		{"a generation that is text", widgetRule(ready), `"status":{"observedGeneration":"2","conditions":[{"type":"Ready","status":"True"}]}`, health.Reconciling, "SpecNotObserved", ""},
		{"the generation is observed", widgetRule(ready), `"status":{"observedGeneration":3,"conditions":[{"type":"Ready","status":"True"}]}`, health.Healthy, "", ""},
		{"a rule that does not care for it", widgetRule(ready, "  generation: ignored"), `"status":{"observedGeneration":2,"conditions":[{"type":"Ready","status":"True"}]}`, health.Healthy, "", ""},
		{"a generation that is no number", widgetRule(ready), `"status":{"observedGeneration":{},"conditions":[{"type":"Ready","status":"True"}]}`, health.Unknown, RuleFailed, "Widget w cannot be judged by the rule Widget.example.org: status.observedGeneration is an object"},
		{"conditions that are no list", widgetRule(ready), `"status":{"conditions":{"Ready":"True"}}`, health.Unknown, RuleFailed, "check 1: status.conditions is an object, not a list"},
		{"a condition that is none", widgetRule(ready), `"status":{"conditions":["Ready"]}`, health.Unknown, RuleFailed, "status.conditions holds a string"},
		{"a condition with a wrong time", widgetRule(ready), `"status":{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"now"}]}`, health.Unknown, RuleFailed, "lastTransitionTime"},
		{"a duplicate condition with another status", widgetRule(ready), `"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"Ready","status":"False"}]}`, health.Unknown, RuleFailed, "duplicate condition Ready"},
		{"a status that is a text", widgetRule(ready), `"status":"fine"`, health.Unknown, RuleFailed, "status is a string, not an object"},

		{"a field that is not there", one(`object.status.phase == 'Up'`), ``, health.Unknown, RuleFailed, "check 1: no such key: status"},
		{"an optional field that is not there", one(`object.?status.?phase.orValue('') == 'Up'`), ``, health.Down, "No", ""},
		{"a text at a path", one(`text(object, 'status.phase') == 'Up'`), `"status":{"phase":"Up"}`, health.Healthy, "", ""},
		{"no text at a path", one(`text(object, 'status.phase') == 'Up'`), `"status":{}`, health.Down, "No", ""},
		{"a text that is a number", one(`text(object, 'status.phase') == 'Up'`), `"status":{"phase":1}`, health.Unknown, RuleFailed, "status.phase is a number, not a string"},
		{"a path of names", one(`text(object, ['metadata', 'annotations', 'example.org/state']) == 'Up'`), `"metadata":{"name":"w","annotations":{"example.org/state":"Up"}}`, health.Healthy, "", ""},
		{"numbers", one(`number(object, 'spec.n', 1) == number(object, 'status.n') && object.status.n == 1`), `"status":{"n":1}`, health.Healthy, "", ""},
		{"a number with a fraction", one(`number(object, 'status.n') == 1`), `"status":{"n":1.5}`, health.Unknown, RuleFailed, "whole number"},
		{"a number in a text", one(`number(object, 'status.n') == 12`), `"status":{"n":"12"}`, health.Healthy, "", ""},
		{"a flag", one(`flag(object, 'spec.on') && !flag(object, 'spec.off')`), `"spec":{"on":true}`, health.Healthy, "", ""},
		{"a flag that is a text", one(`flag(object, 'spec.on')`), `"spec":{"on":"true"}`, health.Unknown, RuleFailed, "not a boolean"},
		{"a list", one(`list(object, 'status.parts').all(p, isTrue(p, 'Ready') || text(p, 'phase') == 'Up')`), `"status":{"parts":[{"phase":"Up"},{"status":{"conditions":[{"type":"Ready","status":"True"}]}}]}`, health.Healthy, "", ""},
		{"no list", one(`list(object, 'status.parts').size() == 0`), ``, health.Healthy, "", ""},
		{"a list of numbers instead of objects", one(`list(object, 'status.parts').all(p, text(p, 'phase') == 'Up')`), `"status":{"parts":[1]}`, health.Unknown, RuleFailed, ""},
		{"times", one(`time(object, 'status.at') < now && created(object) < now && time(object, 'status.none') < created(object)`), `"status":{"at":"2026-01-01T11:00:00+02:00"}`, health.Healthy, "", ""},
		{"a time that is none", one(`time(object, 'status.at') < now`), `"status":{"at":"soon"}`, health.Unknown, RuleFailed, "RFC 3339"},
		{"since a condition", one(`since(object, 'A') == timestamp('2026-01-01T09:30:00Z') && since(object, 'B') == created(object)`), `"status":{"conditions":[{"type":"A","status":"True","lastTransitionTime":"2026-01-01T09:30:00Z"}]}`, health.Healthy, "", ""},
		{"all of a condition", one(`[condition(object, 'A')].exists(c, c.status == 'Unknown' && c.reason == 'R' && c.message == 'm' && c.severity == 'Info' && c.observedGeneration == 3 && !c.stale) && isUnknown(object, 'A')`), `"status":{"conditions":[{"type":"A","status":"Unknown","reason":"R","message":"m","severity":"Info","observedGeneration":3}]}`, health.Healthy, "", ""},
		{"what is not true or false", one(`object.status`), `"status":{}`, health.Unknown, RuleFailed, "not true or false"},
		{"a generation that is behind", widgetRule("  - {when: behind(object), status: Down, reason: Behind, message: is behind}", "  generation: ignored"), `"status":{"observedGeneration":2}`, health.Down, "Behind", ""},
		{"division by zero", one(`1 / number(object, 'n') == 1`), ``, health.Unknown, RuleFailed, "division by zero"},
		{"a text too long to join", one(`join(list(object, 'l').map(x, text(object, 't')), '') == ''`), `"t":"` + strings.Repeat("x", 4000) + `","l":[1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0]`, health.Unknown, RuleFailed, "longer"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			a, ok := parse(t, c.rules).Judge(widget, with(t, c.fields), now)
			if !ok || a.Status != c.status || a.Reason != c.word || !strings.Contains(a.Message, c.message) {
				t.Errorf("got %t, %s %s: %q, want %s %s: %q", ok, a.Status, a.Reason, a.Message, c.status, c.word, c.message)
			}
			if (a.Message == "") != (a.Status == health.Healthy) {
				t.Errorf("the status is %s with the message %q, want a message exactly if not Healthy", a.Status, a.Message)
			}
		})
	}
}

func TestSetJudge_Texts(t *testing.T) {
	for _, c := range []struct{ reason, check, fields, word, message string }{
		{"words of the rule", `reason: Broken, message: is broken`, ``, "Broken", "Widget w is broken"},
		{"words of the object", `reason: Broken, message: is broken, reasonFrom: "text(object, 'status.why')", detail: "text(object, 'status.text')"`, `"status":{"why":"NoDisk","text":"no disk"}`, "NoDisk", "Widget w is broken: no disk"},
		{"the object's words are absent", `reason: Broken, message: is broken, reasonFrom: object.status.why, detail: object.status.text`, ``, "Broken", "Widget w is broken"},
		{"the object's words are no texts", `reason: Broken, message: is broken, reasonFrom: object.status.why, detail: object.status.text`, `"status":{"why":1,"text":{}}`, "Broken", "Widget w is broken"},
		{"parts of a list", `reason: Broken, message: is broken, detail: "join(list(object, 'status.l').filter(x, text(x, 's') == 'bad').map(x, text(x, 'n')), ', ')"`, `"status":{"l":[{"n":"a","s":"bad"},{"n":"b"},{"n":"c","s":"bad"}]}`, "Broken", "Widget w is broken: a, c"},
		{"a long text", `reason: Broken, message: is broken, detail: "text(object, 'status.text')"`, `"status":{"text":"` + strings.Repeat("é ", 10_000) + `"}`, "Broken", "é…"},
		{"a condition, and something more exact", `reason: Broken, message: is broken, condition: A, detail: "'it says ' + condition(object, 'A').message"`, `"status":{"conditions":[{"type":"A","status":"False","reason":"Why","message":"no"}]}`, "Why", "Widget w is broken: it says no"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			a, _ := parse(t, widgetRule("  - {when: 'true', status: Down, "+c.check+"}")).Judge(widget, with(t, c.fields), now)
			if a.Status != health.Down || a.Reason != c.word || !strings.HasSuffix(a.Message, c.message) {
				t.Errorf("got %s %s: %q, want %s: %q", a.Status, a.Reason, a.Message, c.word, c.message)
			}
			if len(a.Message) > maxDetail+100 {
				t.Errorf("the message has %d bytes, want at most %d", len(a.Message), maxDetail+100)
			}
		})
	}
}

func TestSetJudge_ObjectWithoutName(t *testing.T) {
	s := parse(t, widgetRule("  - {when: 'true', status: Down, reason: Broken, message: is broken}"))
	if a, _ := s.Judge(widget, map[string]any{"metadata": 1}, now); a.Message != "Widget is broken" {
		t.Errorf("got %q, want \"Widget is broken\"", a.Message)
	}
}

func TestSetJudge_Until(t *testing.T) {
	const created = `"metadata":{"name":"w","creationTimestamp":"2026-01-01T09:50:00Z"}`
	at := func(minute int) time.Time { return time.Date(2026, 1, 1, 9, minute, 0, 0, time.UTC) }
	for _, c := range []struct {
		reason, checks, fields string
		now                    time.Time
		status                 health.Status
		message                string
		recheck                time.Time
	}{
		{"within its time", `{when: 'true', until: created(object) + duration('5m'), status: Reconciling, reason: Busy, message: is made}`, created, at(54), health.Reconciling, "Widget w is made", at(55)},
		{"at the end of its time, the next check is asked", `{when: 'true', until: created(object) + duration('5m'), status: Reconciling, reason: Busy, message: is made}`, created, at(55), health.Down, "is left", time.Time{}},
		{"or it is something else then", `{when: 'true', until: created(object) + duration('5m'), then: Unhealthy, status: Reconciling, reason: Busy, message: is made}`, created, at(55), health.Unhealthy, "Widget w is made for too long", time.Time{}},
		{"which it is not before", `{when: 'true', until: created(object) + duration('5m'), then: Unhealthy, status: Reconciling, reason: Busy, message: is made}`, created, at(51), health.Reconciling, "Widget w is made", at(55)},
		{"no time is known", `{when: 'true', until: created(object) + duration('5m'), then: Unhealthy, status: Reconciling, reason: Busy, message: is made}`, `"metadata":{"name":"w"}`, at(51), health.Reconciling, "Widget w is made", time.Time{}},
		{"a Healthy that ends", `{when: 'true', until: "time(object, 'status.end')", then: Down, status: Healthy, reason: Expired, message: has expired}`, `"status":{"end":"2026-01-01T09:55:00Z"}`, at(51), health.Healthy, "", at(55)},
		{"and has ended", `{when: 'true', until: "time(object, 'status.end')", then: Down, status: Healthy, reason: Expired, message: has expired}`, `"status":{"end":"2026-01-01T09:55:00Z"}`, at(56), health.Down, "Widget w has expired", time.Time{}},
		{"a time that cannot be read", `{when: 'true', until: "time(object, 'status.end')", then: Down, status: Healthy, reason: Expired, message: has expired}`, `"status":{"end":"x"}`, at(56), health.Unknown, "check 1", time.Time{}},
		{"a time beyond all times", `{when: 'true', until: "created(object) + duration(text(object, 'status.wait'))", then: Down, status: Healthy, reason: Expired, message: has expired}`, `"status":{"wait":"2562047h"}, "metadata":{"name":"w","creationTimestamp":"9998-01-01T09:50:00Z"}`, at(56), health.Unknown, "check 1", time.Time{}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			s := parse(t, widgetRule("  - "+c.checks+"\n  else: {status: Down, reason: Left, message: is left}"))
			a, _ := s.Judge(widget, with(t, c.fields), c.now)
			if a.Status != c.status || !strings.Contains(a.Message, c.message) || !a.Recheck.Equal(c.recheck) {
				t.Errorf("got %s: %q, again at %s, want %s: %q, at %s", a.Status, a.Message, a.Recheck, c.status, c.message, c.recheck)
			}
			if strings.HasSuffix(c.message, "is made") && a.Message != c.message {
				t.Errorf("the message is %q, want %q", a.Message, c.message)
			}
		})
	}
}

func TestSetJudge_Since(t *testing.T) {
	const fields = `"status":{"at":"2026-01-01T09:10:00Z","conditions":[{"type":"A","status":"False","lastTransitionTime":"2026-01-01T09:20:00Z"}]}`
	for check, want := range map[string]string{
		`condition: A`: "09:20",
		`condition: A, since: "time(object, 'status.at')"`:  "09:10",
		`since: "time(object, 'status.at')"`:                "09:10",
		`since: "time(object, 'status.none')"`:              "",
		`since: object.status.none`:                         "",
		`since: "timestamp(text(object, 'metadata.name'))"`: "",
		`condition: B`: "",
	} {
		s := parse(t, widgetRule("  - {when: 'true', status: Down, reason: Broken, message: is broken, "+check+"}"))
		a, _ := s.Judge(widget, with(t, fields), now)
		got := ""
		if !a.Since.IsZero() {
			got = a.Since.Format("15:04")
		}
		if got != want || a.Status != health.Down {
			t.Errorf("%s: %s since %q, want %q", check, a.Status, got, want)
		}
	}
}

func TestSet_KindsAndVersions(t *testing.T) {
	const text = `
rules:
- group: example.org
  kinds: [Widget, Gadget]
  checks: [{when: "text(object, 'status.phase') == 'Up'", status: Healthy}]
- group: example.org
  kinds: [Widget]
  versions: [v1beta1, v1alpha1]
  checks: [{when: 'true', status: Down, reason: Old, message: is old}]
- group: ""
  kinds: [Widget]
  checks: [{when: 'true', status: Unhealthy, reason: Core, message: is of no group}]
`
	s := parse(t, text)
	for _, c := range []struct {
		reason, kind, group, version, phase string
		want                                health.Status
	}{
		{"its kind", "Widget", "example.org", "v1", "Up", health.Healthy},
		{"its other kind", "Gadget", "example.org", "v1", "Up", health.Healthy},
		{"no check holds, and there is no else", "Widget", "example.org", "v1", "Off", ""},
		{"a version with a rule of its own", "Widget", "example.org", "v1beta1", "Up", health.Down},
		{"another one", "Widget", "example.org", "v1alpha1", "Up", health.Down},
		{"the other kind has none for the version", "Gadget", "example.org", "v1beta1", "Up", health.Healthy},
		{"no group", "Widget", "", "v1", "Up", health.Unhealthy},
		{"another group", "Widget", "example.com", "v1", "Up", ""},
		{"another kind", "Doodad", "example.org", "v1", "Up", ""},
	} {
		o := map[string]any{"apiVersion": schema.GroupVersion{Group: c.group, Version: c.version}.String(), "status": map[string]any{"phase": c.phase}}
		a, ok := s.Judge(schema.GroupKind{Group: c.group, Kind: c.kind}, o, now)
		if ok != (c.want != "") || a.Status != c.want {
			t.Errorf("%s: got %t, %q, want %q", c.reason, ok, a.Status, c.want)
		}
	}
	if s.Len() != 3 || len(s.Kinds()) != 3 {
		t.Errorf("there are %d rules for %v, want 3", s.Len(), s.Kinds())
	}
}

func TestSet_AllKindsOfAGroup(t *testing.T) {
	check := func(reason string) string {
		return "checks: [{when: 'true', status: Down, reason: " + reason + ", message: is}]}\n"
	}
	s := parse(t, "rules:\n"+
		"- {group: '*.example.org', kinds: ['*'], "+check("Suffix")+
		"- {group: '*.a.example.org', kinds: [Special], "+check("LongerSuffix")+
		"- {group: b.example.org, kinds: ['*'], "+check("Group")+
		"- {group: b.example.org, kinds: [Exact], versions: [v1], "+check("Exact"))
	for kind, want := range map[string]string{
		"Any.a.example.org": "Suffix", "Special.x.a.example.org": "LongerSuffix", "Other.x.a.example.org": "Suffix", "Any.b.example.org": "Group",
		"Exact.b.example.org": "Exact", "Any.example.org": "", "Any": "", "Any.org": "", "Special.a.example.org": "Suffix",
	} {
		gk := schema.ParseGroupKind(kind)
		a, _ := s.Judge(gk, map[string]any{"apiVersion": gk.Group + "/v1"}, now)
		if a.Reason != want || s.Covers(gk) != (want != "") {
			t.Errorf("%s is judged by %q, want %q; covered: %t", kind, a.Reason, want, s.Covers(gk))
		}
	}
	if a, _ := s.Judge(schema.GroupKind{Group: "b.example.org", Kind: "Exact"}, map[string]any{"apiVersion": "b.example.org/v2"}, now); a.Reason != "Group" {
		t.Errorf("another version is judged by %q, want \"Group\"", a.Reason)
	}
}

func TestLayers(t *testing.T) {
	mine := parse(t, widgetRule("  - {when: \"flag(object, 'mine')\", status: Down, reason: Mine, message: is mine}"))
	theirs := parse(t, widgetRule("  - {when: \"!flag(object, 'none')\", status: Unhealthy, reason: Theirs, message: is theirs}"))
	layers := Layers{mine, (*Set)(nil), theirs}
	for fields, want := range map[string]string{`"mine":true`: "Mine", ``: "Theirs", `"none":true`: ""} {
		if a, ok := layers.Judge(widget, with(t, fields), now); ok != (want != "") || a.Reason != want {
			t.Errorf("with %s: %t, %q, want %q", fields, ok, a.Reason, want)
		}
	}
}

// everything is a layer that covers any kind.
type everything struct{}

func (everything) Judge(schema.GroupKind, map[string]any, time.Time) (health.Assessment, bool) {
	return health.Assessment{}, false
}

func (everything) Covers(schema.GroupKind) bool { return true }

func TestLayers_Covers(t *testing.T) {
	s := parse(t, widgetRule("  - {when: 'true', status: Healthy}"))
	other := schema.GroupKind{Kind: "Pod"}
	for _, c := range []struct {
		reason string
		layers Layers
		kind   schema.GroupKind
		want   bool
	}{
		{"no layer", nil, widget, false},
		{"a layer has a rule", Layers{(*Set)(nil), s}, widget, true},
		{"no layer has one", Layers{(*Set)(nil), s}, other, false},
		{"a layer may have one for any kind", Layers{s, everything{}}, other, true},
	} {
		if got := c.layers.Covers(c.kind); got != c.want {
			t.Errorf("%s: %t, want %t", c.reason, got, c.want)
		}
	}
}

func TestSet_OverridesBuiltInRules(t *testing.T) {
	s := parse(t, `
rules:
- group: apps
  kinds: [Deployment]
  checks: [{when: "text(object, ['metadata', 'labels', 'parked']) == 'yes'", status: Reconciling, reason: Parked, message: is parked}]
`)
	kind := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	hc := health.Context{Now: now, Rules: s}
	judge := func(meta string) health.Assessment {
		o := object(t, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"`+meta+`},"spec":{"replicas":0},"status":{"observedGeneration":1}}`)
		return health.Object(kind, &unstructured.Unstructured{Object: o}, hc)
	}
	if a := judge(`,"labels":{"parked":"yes"}`); a.Reason != "Parked" {
		t.Errorf("the verdict is %+v, want the reason Parked", a)
	}
	if a := judge(``); a.Reason == "Parked" || a.Reason == RuleFailed {
		t.Errorf("a rule that does not apply gives %+v", a)
	}
	if a := judge(`,"labels":{"parked":"yes"},"deletionTimestamp":"2026-01-01T09:59:59Z"`); a.Reason == "Parked" {
		t.Errorf("an object in deletion gets %+v, want another reason than Parked", a)
	}
}

func TestSet_ConcurrentUse(t *testing.T) {
	s, err := Define(File{"rules.yaml", []byte(widgetRule("  - {when: \"isTrue(object, 'Ready')\", status: Healthy}"))})
	if err != nil {
		t.Fatal(err)
	}
	o := with(t, `"status":{"conditions":[{"type":"Ready","status":"True"}]}`)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				if a, ok := s.Judge(widget, o, now); !ok || a.Status != health.Healthy {
					t.Errorf("Judge returned %t, %+v; want Healthy", ok, a)
				}
			}
		})
	}
	group.Wait()
}

// TestDefine_InvalidExpression_IsUnknown checks that an invalid rule does not make an object Healthy.
func TestDefine_InvalidExpression_IsUnknown(t *testing.T) {
	s, err := Define(File{"rules.yaml", []byte(widgetRule("  - {when: 'tru', status: Healthy}"))})
	if err != nil {
		t.Fatal(err)
	}
	a, d := s.Explain(widget, with(t, ""), now)
	if a.Status != health.Unknown || a.Reason != RuleFailed || d == nil || !d.Failed || !strings.Contains(a.Message, "rules.yaml:6:13") {
		t.Errorf("the verdict is %+v, %+v; want a failed rule with its position", a, d)
	}
}
