package alerts

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// mutations break an alert. The tests of promtool must notice each of them.
var mutations = []struct {
	reason string
	apply  func(alert map[string]any) (applied bool)
}{
	{"it never fires", func(alert map[string]any) bool {
		alert["expr"] = "vector(1) < 0"
		return true
	}},
	{"it always fires", func(alert map[string]any) bool {
		alert["expr"] = "vector(1)"
		return true
	}},
	{"it fires without its duration", func(alert map[string]any) bool {
		_, lasts := alert["for"]
		delete(alert, "for")
		return lasts
	}},
}

// The tests of each alert in config/monitoring pass, and fail if the alert is broken.
func TestRules_TestsCanFail(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"agent", "controlplane"} {
		folder := filepath.Join(root, "config", "monitoring")
		raw, err := os.ReadFile(filepath.Join(folder, name+".rules.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		tests, err := os.ReadFile(filepath.Join(folder, name+".test.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		alerts := alertsOf(t, raw)
		if len(alerts) < 15 {
			t.Fatalf("%s.rules.yaml has the alerts %v, want at least 15", name, alerts)
		}
		for _, alert := range alerts {
			t.Run(alert, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				run := func(rules []byte) error {
					t.Helper()
					for file, text := range map[string][]byte{name + ".rules.yaml": rules, name + ".test.yaml": tests} {
						if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
							t.Fatal(err)
						}
					}
					cmd := exec.CommandContext(t.Context(), shared.monitoring.Promtool, "test", "rules", "--run=^"+regexp.QuoteMeta(alert)+"(/|$)", name+".test.yaml")
					cmd.Dir = dir
					out, err := cmd.CombinedOutput()
					if err != nil && !strings.Contains(string(out), `alertname=\"`+alert) && !strings.Contains(string(out), "alertname: "+alert) {
						t.Fatalf("promtool fails for another reason: %v\n%s", err, out)
					}
					return err
				}
				if err := run(raw); err != nil {
					t.Fatalf("the tests fail: %v", err)
				}
				for _, mutation := range mutations {
					if broken, applied := mutate(t, raw, alert, mutation.apply); applied && run(broken) == nil {
						t.Errorf("the tests pass although the alert is broken: %s", mutation.reason)
					}
				}
			})
		}
	}
}

// alertsOf returns the names of the alerts in rules.
func alertsOf(t *testing.T, rules []byte) (names []string) {
	t.Helper()
	_, err := eachAlert(rules, func(alert map[string]any) { names = append(names, alert["alert"].(string)) })
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// mutate applies a mutation to one alert of rules.
func mutate(t *testing.T, rules []byte, name string, apply func(map[string]any) bool) (changed []byte, applied bool) {
	t.Helper()
	changed, err := eachAlert(rules, func(alert map[string]any) {
		if alert["alert"] == name {
			applied = apply(alert)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return changed, applied
}

// eachAlert calls a function with each alert of rules, and returns the rules as the function has changed them.
func eachAlert(rules []byte, call func(alert map[string]any)) ([]byte, error) {
	var file struct {
		Groups []struct {
			Name  string           `json:"name"`
			Rules []map[string]any `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.Unmarshal(rules, &file); err != nil {
		return nil, err
	}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			if rule["alert"] != nil {
				call(rule)
			}
		}
	}
	return yaml.Marshal(file)
}
