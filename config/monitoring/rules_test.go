package monitoring

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const runbookURL = "https://github.com/threeport/threeport-agent/blob/main/docs/runbook.md#"

type rule struct {
	Alert, Expr         string
	Labels, Annotations map[string]string
}

// alerts returns the alerts of all files of rules.
func alerts(t *testing.T) (all []rule) {
	t.Helper()
	files, err := filepath.Glob("*.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		var content struct {
			Groups []struct{ Rules []rule }
		}
		if err := yaml.Unmarshal([]byte(read(t, file)), &content); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, group := range content.Groups {
			all = append(all, slices.DeleteFunc(group.Rules, func(r rule) bool { return r.Alert == "" })...)
		}
	}
	if len(all) < 30 {
		t.Fatalf("the files %v have %d alerts, want at least 30", files, len(all))
	}
	return all
}

func read(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestAlerts_HaveSeverityTextsAndRunbook(t *testing.T) {
	var names []string
	for _, alert := range alerts(t) {
		if slices.Contains(names, alert.Alert) {
			t.Errorf("%s is defined twice", alert.Alert)
		}
		names = append(names, alert.Alert)
		if severity := alert.Labels["severity"]; severity != "critical" && severity != "warning" {
			t.Errorf("%s: the severity is %q, want critical or warning", alert.Alert, severity)
		}
		for _, annotation := range []string{"summary", "description"} {
			if text := alert.Annotations[annotation]; !strings.HasSuffix(text, ".") {
				t.Errorf("%s: %s is %q, want a sentence", alert.Alert, annotation, text)
			}
		}
		if url := alert.Annotations["runbook_url"]; !strings.HasPrefix(url, runbookURL) {
			t.Errorf("%s: runbook_url is %q, want %s…", alert.Alert, url, runbookURL)
		}
	}
}

// The section of an alert names the alert, and has a symptom, a cause, a command and a warning.
func TestRunbook_DocumentsEachAlert(t *testing.T) {
	sections := sectionsOf(read(t, filepath.Join("..", "..", "docs", "runbook.md")))
	command := regexp.MustCompile("```sh\n|`(?:kubectl|controlplane|psql|topk)[ (]")
	defined := map[string]bool{}
	for _, alert := range alerts(t) {
		defined[alert.Alert] = true
		anchor := strings.TrimPrefix(alert.Annotations["runbook_url"], runbookURL)
		section, ok := sections[anchor]
		if !ok {
			t.Errorf("%s: the runbook has no section #%s", alert.Alert, anchor)
			continue
		}
		for _, part := range []string{"`" + alert.Alert + "`", "**Symptom**", "**Cause**", "**Do not**"} {
			if !strings.Contains(section, part) {
				t.Errorf("%s: section #%s of the runbook does not have %s", alert.Alert, anchor, part)
			}
		}
		if !command.MatchString(section) {
			t.Errorf("%s: section #%s of the runbook has no command", alert.Alert, anchor)
		}
	}
	for anchor, section := range sections {
		for _, name := range regexp.MustCompile("`(Threeport(?:Agent|API|Fleet)[A-Za-z]+)`").FindAllStringSubmatch(section, -1) {
			if !defined[name[1]] {
				t.Errorf("section #%s of the runbook names %s, which no file of rules defines", anchor, name[1])
			}
		}
	}
}

// sectionsOf returns the sections of a document by the anchors that GitHub makes of their headings.
func sectionsOf(document string) map[string]string {
	sections := map[string]string{}
	for _, part := range strings.Split("\n"+document, "\n## ")[1:] {
		heading, text, _ := strings.Cut(part, "\n")
		sections[strings.ReplaceAll(strings.ToLower(heading), " ", "-")] = text
	}
	return sections
}

// Each alert has a group of tests with its name: see the comment in these files.
func TestAlerts_AreTested(t *testing.T) {
	tests := read(t, "agent.test.yaml") + read(t, "controlplane.test.yaml")
	for _, alert := range alerts(t) {
		if !strings.Contains(tests, "\n- name: "+alert.Alert+"\n") {
			t.Errorf("no file has tests of %s", alert.Alert)
		}
	}
}
