package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// metric is a metric as the code declares it.
type metric struct {
	name, kind, help string
	labels           []string
}

// programs are the prefixes of metrics. A name that begins with a variable has that of each program.
var programs = []string{"threeport_agent", "controlplane"}

// constructors are the functions of package prometheus that declare a metric, with the type of the metric. The type that belongs to
// NewDesc is in the calls of MustNewConstMetric.
var constructors = map[string]string{
	"NewCounter": "counter", "NewCounterVec": "counter", "NewCounterFunc": "counter",
	"NewGauge": "gauge", "NewGaugeVec": "gauge", "NewGaugeFunc": "gauge",
	"NewHistogram": "histogram", "NewHistogramVec": "histogram",
	"NewDesc": "",
}

// readMetrics returns the metrics that Go files in these folders declare, by name. Tests and their support are left out.
func readMetrics(folders ...string) ([]metric, error) {
	var found []metric
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error { //nolint:gosec // a folder of this repository
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (entry.Name() == "e2e" || entry.Name() == "testing" || entry.Name() == "testdata"):
				return filepath.SkipDir
			case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			declared, err := readFile(path)
			found = append(found, declared...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(found, func(a, b metric) int { return strings.Compare(a.name, b.name) })
	// The connections of the API are two gauges of one metric, each with a constant label.
	return slices.CompactFunc(found, func(a, b metric) bool { return a.name == b.name }), nil
}

// readFile returns the metrics of one file.
func readFile(path string) ([]metric, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []metric
	constant := "" // the type of the file's constant metrics
	var failure error
	ast.Inspect(file, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok || failure != nil {
			return failure == nil
		}
		function := prometheusName(call.Fun)
		if function == "MustNewConstMetric" && len(call.Args) > 1 {
			constant = strings.ToLower(strings.TrimSuffix(prometheusName(call.Args[1]), "Value"))
		}
		kind, ok := constructors[function]
		if !ok {
			return true
		}
		declared, err := declaration(kind, call.Args)
		if err != nil {
			failure = fmt.Errorf("%s: %w", files.Position(call.Pos()), err)
		}
		found = append(found, declared...)
		return true
	})
	for i := range found {
		if found[i].kind == "" {
			found[i].kind = constant
		}
	}
	return found, failure
}

// prometheusName returns the name after "prometheus."; empty for another expression.
func prometheusName(expr ast.Expr) string {
	selector, ok := expr.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if from, ok := selector.X.(*ast.Ident); !ok || from.Name != "prometheus" {
		return ""
	}
	return selector.Sel.Name
}

// declaration returns the metrics of the arguments of a constructor: options and labels, or the name, the text and labels of NewDesc.
func declaration(kind string, args []ast.Expr) ([]metric, error) {
	m := metric{kind: kind}
	var name ast.Expr
	switch options, ok := args[0].(*ast.CompositeLit); {
	case ok:
		for _, element := range options.Elts {
			field, ok := element.(*ast.KeyValueExpr)
			if !ok {
				return nil, fmt.Errorf("options without field names")
			}
			switch field.Key.(*ast.Ident).Name {
			case "Name":
				name = field.Value
			case "Help":
				m.help = text(field.Value)
			case "ConstLabels":
				m.labels = append(m.labels, keys(field.Value)...)
			}
		}
		args = args[1:]
	case len(args) == 4: // NewDesc
		name, m.help = args[0], text(args[1])
		args = args[2:3]
	}
	if len(args) > 0 {
		m.labels = append(m.labels, elements(args[0])...)
	}
	var found []metric
	for _, one := range names(name) {
		m.name = one
		found = append(found, m)
	}
	if len(found) == 0 || m.help == "" {
		return nil, fmt.Errorf("a metric needs a name and a text that are string literals")
	}
	return found, nil
}

// names returns the names that a literal has, or a variable and a literal.
func names(expr ast.Expr) []string {
	if sum, ok := expr.(*ast.BinaryExpr); ok && text(sum.X) == "" && text(sum.Y) != "" {
		var all []string
		for _, program := range programs {
			all = append(all, program+text(sum.Y))
		}
		return all
	}
	if one := text(expr); one != "" {
		return []string{one}
	}
	return nil
}

// text returns the string of literals; empty for another expression.
func text(expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.BasicLit:
		value, _ := strconv.Unquote(e.Value)
		return value
	case *ast.BinaryExpr:
		if left, right := text(e.X), text(e.Y); left != "" && right != "" {
			return left + right
		}
	}
	return ""
}

// elements returns the strings of a list.
func elements(expr ast.Expr) (all []string) {
	if list, ok := expr.(*ast.CompositeLit); ok {
		for _, element := range list.Elts {
			all = append(all, text(element))
		}
	}
	return all
}

// keys returns the keys of a map.
func keys(expr ast.Expr) (all []string) {
	if list, ok := expr.(*ast.CompositeLit); ok {
		for _, element := range list.Elts {
			if pair, ok := element.(*ast.KeyValueExpr); ok {
				all = append(all, text(pair.Key))
			}
		}
	}
	return all
}
