package rules

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/health"
)

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
		{reason: "the first kind", kind: "Widget", group: "example.org", version: "v1", phase: "Up", want: health.Healthy},
		{reason: "the second kind", kind: "Gadget", group: "example.org", version: "v1", phase: "Up", want: health.Healthy},
		{reason: "no check holds, and there is no else", kind: "Widget", group: "example.org", version: "v1", phase: "Off"},
		{reason: "a version with its own rule", kind: "Widget", group: "example.org", version: "v1beta1", phase: "Up", want: health.Down},
		{reason: "another version with its own rule", kind: "Widget", group: "example.org", version: "v1alpha1", phase: "Up", want: health.Down},
		{
			reason: "no rule for the version", kind: "Gadget", group: "example.org",
			version: "v1beta1", phase: "Up", want: health.Healthy,
		},
		{reason: "no group", kind: "Widget", version: "v1", phase: "Up", want: health.Unhealthy},
		{reason: "another group", kind: "Widget", group: "example.com", version: "v1", phase: "Up"},
		{reason: "another kind", kind: "Doodad", group: "example.org", version: "v1", phase: "Up"},
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
		{reason: "no layer", kind: widget},
		{reason: "a layer has a rule", layers: Layers{(*Set)(nil), s}, kind: widget, want: true},
		{reason: "no layer has one", layers: Layers{(*Set)(nil), s}, kind: other},
		{reason: "a layer may have one for any kind", layers: Layers{s, everything{}}, kind: other, want: true},
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
