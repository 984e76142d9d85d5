package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// checkDashboards returns an error if a query of a dashboard uses a metric that no Go file declares. Such a panel would be empty.
func checkDashboards(pattern string, rules ruleSet, metrics []metric) error {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("no file matches %s", pattern)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file) //nolint:gosec // a file of this repository
		if err != nil {
			return err
		}
		var dashboard struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(raw, &dashboard); err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		for _, panel := range dashboard.Panels {
			for _, target := range panel.Targets {
				for _, used := range rules.uses(target.Expr) {
					if _, ok := find(metrics, used); !ok {
						return fmt.Errorf("%s: panel %q uses %s, which no Go file declares", file, panel.Title, used)
					}
				}
			}
		}
	}
	return nil
}
