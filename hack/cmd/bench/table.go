package main

import (
	"fmt"
	"strings"
)

// row is a figure, with a value for each column that has one.
type row struct {
	name, unit string
	values     map[string]float64 // by column
}

// table collects the figures of one size.
type table struct {
	columns []string
	rows    []*row
}

// The columns beside those of the protocols.
const (
	columnInformers = "bare informers"
	columnMetadata  = "bare informers of metadata"
	columnPosts     = "bare loop of posts"
	columnForward   = "bare watch that posts"
)

func (t *table) set(name, unit, column string, value float64) {
	for _, r := range t.rows {
		if r.name == name {
			r.values[column] = value
			return
		}
	}
	t.rows = append(t.rows, &row{name, unit, map[string]float64{column: value}})
}

// String returns the table in Markdown.
func (t *table) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "| figure | %s |\n|---|%s\n", strings.Join(t.columns, " | "), strings.Repeat("---|", len(t.columns)))
	for _, r := range t.rows {
		fmt.Fprintf(&out, "| %s |", r.name)
		for _, column := range t.columns {
			if value, ok := r.values[column]; ok {
				fmt.Fprintf(&out, " %s %s |", number(value), r.unit)
			} else {
				out.WriteString(" |")
			}
		}
		out.WriteString("\n")
	}
	return out.String()
}

// number prints three digits.
func number(value float64) string {
	switch {
	case value >= 100:
		return fmt.Sprintf("%.0f", value)
	case value >= 10:
		return fmt.Sprintf("%.1f", value)
	}
	return fmt.Sprintf("%.2f", value)
}
