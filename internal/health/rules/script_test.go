package rules

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/health"
)

func scriptAt(path, source string) File {
	return File{Name: "rules/" + path, Path: path, Data: []byte(source)}
}

// returning is a script that gives a status and has a message.
func returning(status, message string) string {
	return fmt.Sprintf("hs = {}\nhs.status = %q\nhs.message = %q\nreturn hs\n", status, message)
}

func TestScript_Statuses(t *testing.T) {
	for _, tt := range []struct {
		source, want string
		failed       bool
	}{
		{source: returning("Healthy", "all is well"), want: "Healthy  "},
		{source: returning("Progressing", "1 of 2\n members."), want: "Reconciling Progressing Widget w is progressing: 1 of 2 members"},
		{source: `return {status = "Progressing"}`, want: "Reconciling Progressing Widget w is progressing"},
		{source: returning("Degraded", "no disk"), want: "Unhealthy Degraded Widget w is degraded: no disk"},
		{source: returning("Suspended", ""), want: "Healthy Suspended Widget w is suspended"},
		{source: returning("Missing", ""), want: "Down Missing Widget w is missing"},
		{source: returning("Unknown", "it says nothing"), want: "Unknown Unknown Widget w has an unknown health: it says nothing"},
		{source: `return {status = "Degraded", message = {}}`, want: "Unhealthy Degraded Widget w is degraded"},
		{
			source: `return {status = "Degraded", message = string.rep("x", 60000)}`,
			want:   "Unhealthy Degraded Widget w is degraded: " + strings.Repeat("x", maxDetail) + "…",
		},
		{
			source: returning("healthy", ""), failed: true,
			want: `Unknown RuleFailed Widget w cannot be judged by the rule Widget.example.org: status is "healthy", which Argo CD does not have`,
		},
		{source: `return {}`, failed: true, want: "Unknown RuleFailed Widget w cannot be judged by the rule Widget.example.org: status is nil, not a string"},
		{source: `return nil`, failed: true, want: "Unknown RuleFailed Widget w cannot be judged by the rule Widget.example.org: the script returned nil, not a table"},
		{source: "\nreturn obj.status.phase.x", failed: true, want: "Unknown RuleFailed Widget w cannot be judged by the rule Widget.example.org: " +
			"health.lua:2: attempt to index a non-table object(nil) with key 'phase'"},
		{source: `while true do end`, failed: true, want: "Unknown RuleTooExpensive Widget w cannot be judged by the rule Widget.example.org: it costs too much"},
	} {
		s, err := Parse(scriptAt("example.org/Widget/health.lua", tt.source))
		if err != nil {
			t.Fatal(err)
		}
		a, d := s.Decide(widget, with(t, ""), now)
		if got := fmt.Sprintf("%s %s %s", a.Status, a.Reason, a.Message); got != tt.want || d.Failed != tt.failed {
			t.Errorf("%s gives %q (failed: %t), want %q", tt.source, got, d.Failed, tt.want)
		}
		if want := "the script for Widget.example.org at rules/example.org/Widget/health.lua"; !strings.HasPrefix(d.String(), want) {
			t.Errorf("the decision is %q, want %q", d, want)
		}
	}
}

// TestScript_Time checks that an object is assessed again if its script depends on the time.
func TestScript_Time(t *testing.T) {
	for source, want := range map[string]time.Time{
		`if os.time() > 0 then return {status = "Progressing"} end`:              now.Add(time.Minute),
		`return {status = "Progressing", message = os.date("%Y")}`:               now.Add(time.Minute),
		`if os.time({year = 2026}) > 0 then return {status = "Progressing"} end`: {},
	} {
		s, err := Parse(scriptAt("example.org_Widget.lua", source))
		if err != nil {
			t.Fatal(err)
		}
		if a, _ := s.Judge(widget, with(t, ""), now); !a.Recheck.Equal(want) || a.Status != health.Reconciling {
			t.Errorf("%s: %s, assessed again at %s, want %s", source, a.Status, a.Recheck, want)
		}
	}
}

func TestScript_FileNames(t *testing.T) {
	const degraded = `return {status = "Degraded"}`
	for path, want := range map[string]string{
		"example.org/Widget/health.lua":                         "Widget.example.org",
		"apps/Deployment/health.lua":                            "Deployment.apps",
		"Service/health.lua":                                    "Service",
		"_.crossplane.io/_/health.lua":                          "*.*.crossplane.io",
		"_.crossplane.io/Bucket/health.lua":                     "Bucket.*.crossplane.io",
		"example.org_Widget.lua":                                "Widget.example.org",
		"Service.lua":                                           "Service",
		"_.crossplane.io__.lua":                                 "*.*.crossplane.io",
		"resource.customizations.health.example.org_Widget":     "Widget.example.org",
		"resource.customizations.health.Service":                "Service",
		"resource.customizations.health._.crossplane.io_Bucket": "Bucket.*.crossplane.io",
		"health.lua":                                            "",
		"Example Org_Widget.lua":                                "",
		"example.org_.lua":                                      "",
		".lua":                                                  "",
		"resource.customizations.health.":                       "",
		"resource.customizations.health.example.org_Wid-":       "",
	} {
		s, err := Parse(scriptAt(path, degraded))
		if want == "" {
			if err == nil || !strings.Contains(err.Error(), "gives no group and kind") {
				t.Errorf("%s gives %v, want an error", path, err)
			}
			continue
		}
		if err != nil || s.rules[0].name != want {
			t.Errorf("%s gives %v, %v, want %s", path, s, err, want)
		}
	}
}

func TestScript_Specificity(t *testing.T) {
	s, err := Parse(
		scriptAt("_.example.org/_/health.lua", returning("Missing", "")),
		scriptAt("_.example.org/Widget/health.lua", returning("Degraded", "")),
		scriptAt("a.example.org/Widget/health.lua", returning("Progressing", "")),
		File{Name: "rules.yaml", Data: []byte("rules: [{group: b.example.org, kinds: ['*'], checks: [{when: 'true', status: Unknown, reason: Rule, message: is known}]}]")},
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ group, kind, want string }{
		{"a.example.org", "Widget", "Progressing"},
		{"c.example.org", "Widget", "Degraded"},
		{"c.example.org", "Gadget", "Missing"},
		{"b.example.org", "Widget", "Rule"},
	} {
		if a, _ := s.Judge(schema.GroupKind{Group: tt.group, Kind: tt.kind}, with(t, ""), now); a.Reason != tt.want {
			t.Errorf("%s.%s is %s, want %s", tt.kind, tt.group, a.Reason, tt.want)
		}
	}
}

func TestScript_Errors(t *testing.T) {
	const degraded = `return {status = "Degraded"}`
	rule := File{Name: "rules.yaml", Path: "rules.yaml", Data: []byte(widgetRule("  - {when: 'true', status: Healthy}", "  versions: [v1beta1]"))}
	for _, tt := range []struct {
		reason string
		files  []File
		want   []string
	}{
		{
			"a rule before a script",
			[]File{rule, scriptAt("example.org_Widget.lua", degraded)},
			[]string{"rules/example.org_Widget.lua:1:1: rule Widget.example.org: there is a rule for Widget.example.org already, at rules.yaml:2:3"},
		},
		{
			"a script before a rule",
			[]File{scriptAt("example.org_Widget.lua", degraded), rule},
			[]string{"rules.yaml:2:3: rule Widget.example.org: there is a rule for Widget.example.org already, at rules/example.org_Widget.lua:1:1"},
		},
		{
			"two scripts",
			[]File{scriptAt("example.org/Widget/health.lua", degraded), scriptAt("resource.customizations.health.example.org_Widget", degraded)},
			[]string{"rules/resource.customizations.health.example.org_Widget:1:1: rule Widget.example.org: " +
				"there is a rule for Widget.example.org already, at rules/example.org/Widget/health.lua:1:1"},
		},
		{
			"syntax",
			[]File{scriptAt("example.org/Widget/health.lua", "local hs = {}\nhs.status = = 1"), scriptAt("example.org/Gadget/health.lua", "x")},
			[]string{"rules/example.org/Widget/health.lua:2:1: rule Widget.example.org: ", "rules/example.org/Gadget/health.lua:1:1: rule Gadget.example.org: "},
		},
	} {
		_, err := Parse(tt.files...)
		for _, want := range tt.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %s", tt.reason, err, want)
			}
		}
	}
}

// TestLoad_Scripts reads a folder as Argo CD has it, with files that are no scripts.
func TestLoad_Scripts(t *testing.T) {
	dir := t.TempDir()
	for path, text := range map[string]string{
		"example.org/Widget/health.lua":                "return {status = 'Degraded'}",
		"example.org/Widget/health_test.yaml":          "tests: [",
		"example.org/Widget/actions/discovery.lua":     "not Lua",
		"example.org/Widget/actions/start/action.lua":  "not Lua",
		"example.org/Widget/testdata/degraded.yaml":    "rules: [",
		"example.org/Widget/testdata/health.lua":       "not Lua",
		"example.org/README.md":                        "not Lua",
		"_.crossplane.io/_/health.lua":                 "return {status = 'Missing'}",
		"lost+found/x/health.lua":                      "not Lua",
		".git/x/health.lua":                            "not Lua",
		"embed.go":                                     "package resource_customizations",
		"rules.yaml":                                   strings.ReplaceAll(saying("One"), "Widget", "Gadget"),
		"resource.customizations.useOpenLibs.x_Widget": "true",
	} {
		write(t, filepath.Join(dir, path), text)
	}
	s, err := Load(dir)
	if err != nil || s.Len() != 3 {
		t.Fatalf("%d rules are read, %v, want 3", s.Len(), err)
	}
	one, err := Load(filepath.Join(dir, "example.org/Widget/health.lua"))
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []*Set{s, one} {
		if a, _ := set.Judge(widget, with(t, ""), now); a.Reason != "Degraded" {
			t.Errorf("a Widget is %s, want Degraded", a.Reason)
		}
	}
}

func TestLive_Scripts_AreReloaded(t *testing.T) {
	m := &mount{dir: t.TempDir()}
	const name = "resource.customizations.health.example.org_Widget"
	m.project(t, map[string]string{name: returning("Degraded", ""), "resource.customizations": "not read"})
	r := open(t, m.dir, onlyNotified)
	r.says(t, "Degraded")
	m.project(t, map[string]string{name: returning("Missing", "")})
	r.says(t, "Missing")
	m.project(t, map[string]string{name: "return = 1"})
	r.logs(t, name+":1:1: rule Widget.example.org: ")
	m.project(t, map[string]string{name: returning("Missing", ""), "a.yaml": saying("One")})
	r.logs(t, "there is a rule for Widget.example.org already, at ")
	r.says(t, "Missing")
	m.project(t, map[string]string{name: "error('no')"})
	r.says(t, RuleFailed)
	if got := testutil.ToFloat64(r.metrics.failures.WithLabelValues(RuleFailed)); got < 1 {
		t.Errorf("threeport_agent_health_rule_failures_total is %v, want 1 or more", got)
	}

	dir := t.TempDir()
	path := filepath.Join(dir, "example.org", "Widget", "health.lua")
	write(t, path, returning("Degraded", ""))
	r = open(t, dir, func(l *Live) { l.files.PollInterval = 10 * time.Millisecond })
	r.says(t, "Degraded")
	write(t, path, returning("Missing", ""))
	r.says(t, "Missing")
}
