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
	s, err := Parse(File{Name: "rules.yaml", Data: []byte(text)})
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
		{
			reason: "a condition is true", rules: widgetRule(ready), fields: `"status":{"conditions":[{"type":"Ready","status":"True"}]}`,
			status: health.Healthy,
		},
		{
			reason: "a condition has a reason and a message", rules: widgetRule(ready),
			fields: `"status":{"conditions":[{"type":"Ready","status":"False","reason":"NoDisk","message":"There is no\n disk."}]}`,
			status: health.Unhealthy, word: "NoDisk", message: "Widget w is not ready: There is no disk",
		},
		{
			reason: "a reason that is no word", rules: widgetRule(ready),
			fields: `"status":{"conditions":[{"type":"Ready","status":"False","reason":"no disk"}]}`,
			status: health.Unhealthy, word: "NotReady", message: "Widget w is not ready",
		},
		{
			reason: "a condition of an earlier generation", rules: widgetRule(ready),
			fields: `"status":{"conditions":[{"type":"Ready","status":"True","observedGeneration":2}]}`,
			status: health.Unknown, word: "NoSignal", message: "Widget w says nothing",
		},
		{reason: "no status", rules: widgetRule(ready), status: health.Unknown, word: "NoSignal"},
		{reason: "null as the status", rules: widgetRule(ready), fields: `"status":null`, status: health.Unknown, word: "NoSignal"},
		{
			reason: "the generation is not observed", rules: widgetRule(ready),
			fields: `"status":{"observedGeneration":2,"conditions":[{"type":"Ready","status":"True"}]}`,
			status: health.Reconciling, word: "SpecNotObserved", message: "has not seen the latest spec",
		},
		{
			reason: "a generation that is text", rules: widgetRule(ready),
			fields: `"status":{"observedGeneration":"2","conditions":[{"type":"Ready","status":"True"}]}`,
			status: health.Reconciling, word: "SpecNotObserved",
		},
		{
			reason: "the generation is observed", rules: widgetRule(ready),
			fields: `"status":{"observedGeneration":3,"conditions":[{"type":"Ready","status":"True"}]}`,
			status: health.Healthy,
		},
		{
			reason: "a rule that does not care for it", rules: widgetRule(ready, "  generation: ignored"),
			fields: `"status":{"observedGeneration":2,"conditions":[{"type":"Ready","status":"True"}]}`,
			status: health.Healthy,
		},
		{
			reason: "a generation that is no number", rules: widgetRule(ready),
			fields: `"status":{"observedGeneration":"8f3c","conditions":[{"type":"Ready","status":"True","observedGeneration":{}}]}`,
			status: health.Healthy,
		},
		{
			reason: "a generation below no object", rules: widgetRule(ready), fields: `"status":"Ready"`,
			status: health.Unknown, word: RuleFailed,
			message: "Widget w cannot be judged by the rule Widget.example.org: status is a string, not an object",
		},
		{
			reason: "conditions that are no list", rules: widgetRule(ready), fields: `"status":{"conditions":{"Ready":"True"}}`,
			status: health.Unknown, word: RuleFailed, message: "check 1: status.conditions is an object, not a list",
		},
		{
			reason: "a condition that is none", rules: widgetRule(ready), fields: `"status":{"conditions":["Ready"]}`,
			status: health.Unknown, word: "NoSignal",
		},
		{
			reason: "a condition with a wrong time", rules: widgetRule(ready),
			fields: `"status":{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"now"}]}`,
			status: health.Healthy,
		},
		{
			reason: "a condition with a boolean", rules: widgetRule(ready),
			fields: `"status":{"conditions":[{"type":"Ready","status":true,"message":5}]}`, status: health.Healthy,
		},
		{
			reason: "a condition in lower case", rules: widgetRule(ready),
			fields: `"status":{"conditions":[{"type":"Ready","status":"false"}]}`,
			status: health.Unhealthy, word: "NotReady", message: "Widget w is not ready",
		},
		{
			reason: "a condition whose status cannot be read", rules: widgetRule(ready),
			fields: `"status":{"conditions":[{"type":"Ready","status":{}}]}`,
			status: health.Unknown, word: RuleFailed, message: "condition Ready: status is an object",
		},
		{
			reason: "an idle object",
			rules: widgetRule("  - {when: \"flag(object, 'spec.off')\", status: Healthy, reason: Stopped, message: is stopped, " +
				"detail: \"text(object, 'spec.by')\"}"),
			fields: `"spec":{"off":true,"by":"Ann"}`,
			status: health.Healthy, word: "Stopped", message: "Widget w is stopped: Ann",
		},
		{
			reason: "a duplicate condition with another status", rules: widgetRule(ready),
			fields: `"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"Ready","status":"False"}]}`,
			status: health.Unknown, word: RuleFailed, message: "duplicate condition Ready",
		},
		{
			reason: "a status that is a text", rules: widgetRule(ready), fields: `"status":"fine"`,
			status: health.Unknown, word: RuleFailed, message: "status is a string, not an object",
		},

		{
			reason: "a field that is not there", rules: one(`object.status.phase == 'Up'`),
			status: health.Unknown, word: RuleFailed, message: "check 1: no such key: status",
		},
		{reason: "an optional field that is not there", rules: one(`object.?status.?phase.orValue('') == 'Up'`), status: health.Down, word: "No"},
		{
			reason: "a text at a path", rules: one(`text(object, 'status.phase') == 'Up'`),
			fields: `"status":{"phase":"Up"}`, status: health.Healthy,
		},
		{reason: "no text at a path", rules: one(`text(object, 'status.phase') == 'Up'`), fields: `"status":{}`, status: health.Down, word: "No"},
		{
			reason: "a text that is a number", rules: one(`text(object, 'status.phase') == 'Up'`),
			fields: `"status":{"phase":1}`, status: health.Unknown, word: RuleFailed,
			message: "status.phase is a number, not a string",
		},
		{
			reason: "a path of names",
			rules:  one(`text(object, ['metadata', 'annotations', 'example.org/state']) == 'Up'`),
			fields: `"metadata":{"name":"w","annotations":{"example.org/state":"Up"}}`,
			status: health.Healthy,
		},
		{
			reason: "numbers",
			rules:  one(`number(object, 'spec.n', 1) == number(object, 'status.n') && object.status.n == 1`),
			fields: `"status":{"n":1}`, status: health.Healthy,
		},
		{
			reason: "a number with a fraction", rules: one(`number(object, 'status.n') == 1`),
			fields: `"status":{"n":1.5}`, status: health.Unknown, word: RuleFailed, message: "whole number",
		},
		{reason: "a number in a text", rules: one(`number(object, 'status.n') == 12`), fields: `"status":{"n":"12"}`, status: health.Healthy},
		{
			reason: "a flag", rules: one(`flag(object, 'spec.on') && !flag(object, 'spec.off')`),
			fields: `"spec":{"on":true}`, status: health.Healthy,
		},
		{
			reason: "a flag that is a text", rules: one(`flag(object, 'spec.on')`), fields: `"spec":{"on":"true"}`,
			status: health.Unknown, word: RuleFailed, message: "not a boolean",
		},
		{
			reason: "a list",
			rules:  one(`list(object, 'status.parts').all(p, isTrue(p, 'Ready') || text(p, 'phase') == 'Up')`),
			fields: `"status":{"parts":[{"phase":"Up"},{"status":{"conditions":[{"type":"Ready","status":"True"}]}}]}`,
			status: health.Healthy,
		},
		{reason: "no list", rules: one(`list(object, 'status.parts').size() == 0`), status: health.Healthy},
		{
			reason: "a list of numbers instead of objects",
			rules:  one(`list(object, 'status.parts').all(p, text(p, 'phase') == 'Up')`),
			fields: `"status":{"parts":[1]}`, status: health.Unknown, word: RuleFailed,
		},
		{
			reason: "times",
			rules:  one(`time(object, 'status.at') < now && created(object) < now && time(object, 'status.none') < created(object)`),
			fields: `"status":{"at":"2026-01-01T11:00:00+02:00"}`, status: health.Healthy,
		},
		{
			reason: "a time that is none", rules: one(`time(object, 'status.at') < now`),
			fields: `"status":{"at":"soon"}`, status: health.Unknown, word: RuleFailed,
			message: "not a time such as",
		},
		{
			reason: "since a condition",
			rules:  one(`since(object, 'A') == timestamp('2026-01-01T09:30:00Z') && since(object, 'B') == created(object)`),
			fields: `"status":{"conditions":[{"type":"A","status":"True","lastTransitionTime":"2026-01-01T09:30:00Z"}]}`,
			status: health.Healthy,
		},
		{
			reason: "all of a condition",
			rules:  one(`[condition(object, 'A')].exists(c, c.status == 'Unknown' && c.reason == 'R' && c.message == 'm' && c.severity == 'Info' && c.observedGeneration == 3 && !c.stale) && isUnknown(object, 'A')`),
			fields: `"status":{"conditions":[{"type":"A","status":"Unknown","reason":"R","message":"m","severity":"Info","observedGeneration":3}]}`,
			status: health.Healthy,
		},
		{
			reason: "the expression is not boolean", rules: one(`object.status`), fields: `"status":{}`,
			status: health.Unknown, word: RuleFailed, message: "not true or false",
		},
		{
			reason: "a generation that is behind",
			rules:  widgetRule("  - {when: behind(object), status: Down, reason: Behind, message: is behind}", "  generation: ignored"),
			fields: `"status":{"observedGeneration":2}`, status: health.Down, word: "Behind",
		},
		{
			reason: "division by zero", rules: one(`1 / number(object, 'n') == 1`), status: health.Unknown,
			word: RuleFailed, message: "division by zero",
		},
		{
			reason: "a text too long to join",
			rules:  one(`join(list(object, 'l').map(x, text(object, 't')), '') == ''`),
			fields: `"t":"` + strings.Repeat("x", 4000) + `","l":[1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0]`,
			status: health.Unknown, word: RuleFailed, message: "longer",
		},
	} {
		t.Run(c.reason, func(t *testing.T) {
			a, ok := parse(t, c.rules).Judge(widget, with(t, c.fields), now)
			if !ok || a.Status != c.status || a.Reason != c.word || !strings.Contains(a.Message, c.message) {
				t.Errorf("got %t, %s %s: %q, want %s %s: %q", ok, a.Status, a.Reason, a.Message, c.status, c.word, c.message)
			}
			if (a.Message == "") != (a.Status == health.Healthy && c.word == "") {
				t.Errorf("the status is %s with the message %q, want a message exactly if not Healthy or idle", a.Status, a.Message)
			}
		})
	}
}

func TestSetJudge_Texts(t *testing.T) {
	for _, c := range []struct{ reason, check, fields, word, message string }{
		{reason: "words of the rule", check: `reason: Broken, message: is broken`, word: "Broken", message: "Widget w is broken"},
		{
			reason: "words of the object",
			check:  `reason: Broken, message: is broken, reasonFrom: "text(object, 'status.why')", detail: "text(object, 'status.text')"`,
			fields: `"status":{"why":"NoDisk","text":"no disk"}`, word: "NoDisk", message: "Widget w is broken: no disk",
		},
		{
			reason: "the object's words are absent",
			check:  `reason: Broken, message: is broken, reasonFrom: object.status.why, detail: object.status.text`,
			word:   "Broken", message: "Widget w is broken",
		},
		{
			reason: "the object's words are no texts",
			check:  `reason: Broken, message: is broken, reasonFrom: object.status.why, detail: object.status.text`,
			fields: `"status":{"why":1,"text":{}}`, word: "Broken", message: "Widget w is broken",
		},
		{
			reason: "parts of a list",
			check:  `reason: Broken, message: is broken, detail: "join(list(object, 'status.l').filter(x, text(x, 's') == 'bad').map(x, text(x, 'n')), ', ')"`,
			fields: `"status":{"l":[{"n":"a","s":"bad"},{"n":"b"},{"n":"c","s":"bad"}]}`,
			word:   "Broken", message: "Widget w is broken: a, c",
		},
		{
			reason: "a long text",
			check:  `reason: Broken, message: is broken, detail: "text(object, 'status.text')"`,
			fields: `"status":{"text":"` + strings.Repeat("é ", 10_000) + `"}`, word: "Broken",
			message: "é…",
		},
		{
			reason: "a condition, and something more exact",
			check:  `reason: Broken, message: is broken, condition: A, detail: "'it says ' + condition(object, 'A').message"`,
			fields: `"status":{"conditions":[{"type":"A","status":"False","reason":"Why","message":"no"}]}`,
			word:   "Why", message: "Widget w is broken: it says no",
		},
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
		{
			reason: "within its time",
			checks: `{when: 'true', until: created(object) + duration('5m'), status: Reconciling, reason: Busy, message: is made}`,
			fields: created, now: at(54), status: health.Reconciling, message: "Widget w is made",
			recheck: at(55),
		},
		{
			reason: "at the end of its time, the next check is asked",
			checks: `{when: 'true', until: created(object) + duration('5m'), status: Reconciling, reason: Busy, message: is made}`,
			fields: created, now: at(55), status: health.Down, message: "is left", recheck: time.Time{},
		},
		{
			reason: "or it is something else then",
			checks: `{when: 'true', until: created(object) + duration('5m'), then: Unhealthy, status: Reconciling, reason: Busy, message: is made}`,
			fields: created, now: at(55), status: health.Unhealthy, message: "Widget w is made for too long",
			recheck: time.Time{},
		},
		{
			reason: "which it is not before",
			checks: `{when: 'true', until: created(object) + duration('5m'), then: Unhealthy, status: Reconciling, reason: Busy, message: is made}`,
			fields: created, now: at(51), status: health.Reconciling, message: "Widget w is made",
			recheck: at(55),
		},
		{
			reason: "no time is known",
			checks: `{when: 'true', until: created(object) + duration('5m'), then: Unhealthy, status: Reconciling, reason: Busy, message: is made}`,
			fields: `"metadata":{"name":"w"}`, now: at(51), status: health.Reconciling,
			message: "Widget w is made", recheck: time.Time{},
		},
		{
			reason: "a Healthy that ends",
			checks: `{when: 'true', until: "time(object, 'status.end')", then: Down, status: Healthy, reason: Expired, message: has expired}`,
			fields: `"status":{"end":"2026-01-01T09:55:00Z"}`, now: at(51), status: health.Healthy,
			recheck: at(55),
		},
		{
			reason: "the check ends, and its time is over",
			checks: `{when: 'true', until: "time(object, 'status.end')", then: Down, status: Healthy, reason: Expired, message: has expired}`,
			fields: `"status":{"end":"2026-01-01T09:55:00Z"}`, now: at(56), status: health.Down,
			message: "Widget w has expired", recheck: time.Time{},
		},
		{
			reason: "a time that cannot be read",
			checks: `{when: 'true', until: "time(object, 'status.end')", then: Down, status: Healthy, reason: Expired, message: has expired}`,
			fields: `"status":{"end":"x"}`, now: at(56), status: health.Unknown, message: "check 1",
			recheck: time.Time{},
		},
		{
			reason: "a time beyond all times",
			checks: `{when: 'true', until: "created(object) + duration(text(object, 'status.wait'))", then: Down, status: Healthy, reason: Expired, message: has expired}`,
			fields: `"status":{"wait":"2562047h"}, "metadata":{"name":"w","creationTimestamp":"9998-01-01T09:50:00Z"}`,
			now:    at(56), status: health.Unknown, message: "check 1", recheck: time.Time{},
		},
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

func TestSet_ConcurrentUse(t *testing.T) {
	s, err := Define(File{Name: "rules.yaml", Data: []byte(widgetRule("  - {when: \"isTrue(object, 'Ready')\", status: Healthy}"))})
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
	s, err := Define(File{Name: "rules.yaml", Data: []byte(widgetRule("  - {when: 'tru', status: Healthy}"))})
	if err != nil {
		t.Fatal(err)
	}
	a, d := s.Decide(widget, with(t, ""), now)
	if a.Status != health.Unknown || a.Reason != RuleFailed || d == nil || !d.Failed || !strings.Contains(a.Message, "rules.yaml:6:13") {
		t.Errorf("the verdict is %+v, %+v; want a failed rule with its position", a, d)
	}
}
