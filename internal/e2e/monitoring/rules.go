package monitoring

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// duration matches the duration of an alert and the window of a range.
var duration = regexp.MustCompile(`(for: |\[)(\d+)([mh])\b`)

// shorten returns rules with shorter durations and windows. It changes no other part of the rules.
func shorten(rules string, minute time.Duration) string {
	return duration.ReplaceAllStringFunc(rules, func(found string) string {
		parts := duration.FindStringSubmatch(found)
		n, _ := strconv.Atoi(parts[2])
		if parts[3] == "h" {
			n *= 60
		}
		return fmt.Sprintf("%s%dms", parts[1], (time.Duration(n) * minute).Milliseconds())
	})
}

// Rules returns the texts of the files of rules in config/monitoring, by their names. root is the path of the module's root.
func Rules(root string) (map[string]string, error) {
	rules := map[string]string{}
	for _, name := range []string{"agent.rules.yaml", "controlplane.rules.yaml"} {
		text, err := os.ReadFile(filepath.Join(root, "config", "monitoring", name)) //nolint:gosec // a file of the source tree
		if err != nil {
			return nil, fmt.Errorf("read rules: %w", err)
		}
		rules[name] = string(text)
	}
	return rules, nil
}
