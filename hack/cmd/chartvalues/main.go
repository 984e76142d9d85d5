// Command chartvalues prints docs/helm-values.md: the values of Helm charts with the defaults and comments of their values.yaml.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "chartvalues:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, charts []string) error {
	var text strings.Builder
	text.WriteString("# Values of the Helm charts\n\n`make charts-generate` writes this document from the comments of the values. See [Helm](helm.md).\n")
	for _, chart := range charts {
		raw, err := os.ReadFile(filepath.Join(chart, "values.yaml")) //nolint:gosec // the caller names the chart
		if err != nil {
			return fmt.Errorf("read values: %w", err)
		}
		rows, err := table(raw)
		if err != nil {
			return fmt.Errorf("values of %s: %w", chart, err)
		}
		fmt.Fprintf(&text, "\n## %s\n\n| value | default | meaning |\n|---|---|---|\n%s", filepath.Base(chart), rows)
	}
	if _, err := io.WriteString(out, text.String()); err != nil {
		return fmt.Errorf("print document: %w", err)
	}
	return nil
}

// table returns the rows of a values.yaml. A mapping without a comment is a group of values.
func table(raw []byte) (string, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(raw, &document); err != nil {
		return "", fmt.Errorf("parse: %w", err)
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return "", errors.New("not a mapping")
	}
	var rows strings.Builder
	err := appendRows(&rows, "", document.Content[0])
	return rows.String(), err
}

func appendRows(rows *strings.Builder, prefix string, mapping *yaml.Node) error {
	for i := 0; i < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		path := prefix + key.Value
		if key.HeadComment == "" {
			if value.Kind != yaml.MappingNode {
				return fmt.Errorf("%s has no comment", path)
			}
			if err := appendRows(rows, path+".", value); err != nil {
				return err
			}
			continue
		}
		var decoded any
		if err := value.Decode(&decoded); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		literal, err := json.Marshal(decoded)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		fmt.Fprintf(rows, "| `%s` | `%s` | %s |\n", path, literal, meaning(key.HeadComment))
	}
	return nil
}

// meaning returns a comment as the text of a cell.
func meaning(comment string) string {
	lines := strings.Split(comment, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(strings.TrimPrefix(line, "#"))
	}
	return strings.ReplaceAll(strings.Join(lines, " "), "|", `\|`)
}
