package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// ruleSet has the rules of some files.
type ruleSet struct {
	alerts []rule
	// recorded has the expressions of recording rules by name.
	recorded map[string]string
}

type rule struct {
	Alert, Record, Expr string
	Annotations         map[string]string
}

// readRules reads the files of a pattern.
func readRules(pattern string) (ruleSet, error) {
	set := ruleSet{recorded: map[string]string{}}
	files, err := filepath.Glob(pattern)
	if err != nil {
		return set, err
	}
	if len(files) == 0 {
		return set, fmt.Errorf("no file matches %s", pattern)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file) //nolint:gosec // a file of this repository
		if err != nil {
			return set, err
		}
		var content struct {
			Groups []struct{ Rules []rule }
		}
		if err := yaml.Unmarshal(raw, &content); err != nil {
			return set, fmt.Errorf("read %s: %w", file, err)
		}
		for _, group := range content.Groups {
			for _, r := range group.Rules {
				if r.Record != "" {
					set.recorded[r.Record] = r.Expr
					continue
				}
				set.alerts = append(set.alerts, r)
			}
		}
	}
	return set, nil
}

// name matches the names of an expression: those of metrics, recording rules, labels and functions.
var name = regexp.MustCompile(`[a-zA-Z_][a-zA-Z0-9_:]*`)

// byMetric returns links to the runbook by metric, for the alerts that use the metric, also through recording rules.
func (s ruleSet) byMetric(metrics []metric) (map[string][]string, error) {
	links := map[string][]string{}
	for _, alert := range s.alerts {
		link := fmt.Sprintf("[%s](%s)", alert.Alert, path.Base(alert.Annotations["runbook_url"]))
		for _, used := range s.uses(alert.Expr) {
			declared, ok := find(metrics, used)
			if !ok {
				return nil, fmt.Errorf("alert %s uses %s, which no Go file declares", alert.Alert, used)
			}
			if !slices.Contains(links[declared], link) {
				links[declared] = append(links[declared], link)
			}
		}
	}
	return links, nil
}

// uses returns the metrics of the project in an expression, with those of its recording rules.
func (s ruleSet) uses(expr string) (all []string) {
	for _, used := range name.FindAllString(expr, -1) {
		if recorded, ok := s.recorded[used]; ok {
			all = append(all, s.uses(recorded)...)
			continue
		}
		if slices.ContainsFunc(programs, func(program string) bool { return strings.HasPrefix(used, program+"_") }) {
			all = append(all, used)
		}
	}
	return all
}

// find returns the metric that has a series.
func find(metrics []metric, series string) (string, bool) {
	for _, m := range metrics {
		suffix, ok := strings.CutPrefix(series, m.name)
		if ok && (suffix == "" || m.kind == "histogram" && slices.Contains([]string{"_bucket", "_sum", "_count"}, suffix)) {
			return m.name, true
		}
	}
	return "", false
}
