package rules

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/threeport/threeport-agent/internal/health"
)

// Limits of a file of rules.
const (
	maxChecks = 64
	maxKinds  = 256
	maxRules  = 2000
)

// camelCase matches a reason.
var camelCase = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,63}$`)

// kindName, groupName and versionName match names in a rule. The kind * means all kinds of the group, and a group that
// starts with *. all groups with that suffix.
var (
	kindName    = regexp.MustCompile(`^\*$|^[A-Za-z][A-Za-z0-9]{0,62}$`)
	groupName   = regexp.MustCompile(`^$|^(\*\.)?[a-z0-9]([-a-z0-9.]{0,249}[a-z0-9])?$`)
	versionName = regexp.MustCompile(`^v[a-z0-9]{1,62}$`)
)

// statuses are the statuses that a rule may give.
var statuses = []health.Status{health.Healthy, health.Reconciling, health.Unhealthy, health.Down, health.Unknown}

// decoder reads the rules of a file and collects their errors.
type decoder struct {
	file    string
	content string // of the file
	errors  Errors
	// rule and place are the position in the file, for errors.
	rule, place string
}

func (d *decoder) fail(n *yaml.Node, format string, args ...any) {
	d.errors = append(d.errors, &Error{
		File: d.file, Line: n.Line, Column: n.Column, Rule: d.rule, Place: d.place, Text: fmt.Sprintf(format, args...),
	})
}

// decode reads a file: YAML documents, each with a list of rules.
func (d *decoder) decode(data []byte) []*rule {
	d.content = string(data)
	var out []*rule
	documents := 0
	for docs := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var doc yaml.Node
		err := docs.Decode(&doc)
		switch {
		case errors.Is(err, io.EOF):
			if documents == 0 { // a truncated file must not remove rules silently
				d.errors = append(d.errors, &Error{File: d.file, Text: `there are no rules in it: write "rules: []" if that is meant`})
			}
			return out
		case err != nil:
			d.errors = append(d.errors, syntaxError(d.file, err))
			return out
		case len(doc.Content) == 1 && doc.Content[0].Tag != "!!null":
			documents++
			out = append(out, d.document(doc.Content[0])...)
		}
	}
}

var yamlLine = regexp.MustCompile(`^(?:yaml: )?line (\d+): `)

// quoteHint names the most frequent cause. The line of a YAML error may be the start of the list or mapping.
const quoteHint = "; an expression with ': ' or ' #' in it, or that begins with a quote, '!', '[' or '{', has to be in quotes as a whole"

// syntaxError returns the error for invalid YAML. The decoder has the line only in its text.
func syntaxError(file string, err error) *Error {
	e := &Error{File: file, Text: strings.TrimPrefix(err.Error(), "yaml: ")}
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		e.Text = "this is not YAML: " + err.Error()[len(m[0]):] + quoteHint
		if _, err := fmt.Sscan(m[1], &e.Line); err == nil {
			e.Column = 1
		}
	}
	return e
}

func (d *decoder) document(n *yaml.Node) []*rule {
	if isConfigMap(n) {
		d.fail(n, "this is a ConfigMap: give the files in its data, not its manifest")
		return nil
	}
	var list []*yaml.Node
	ok := d.mapping(n, map[string]func(*yaml.Node){
		"rules": func(n *yaml.Node) { list = d.sequence(n) },
	}, "rules")
	if !ok {
		return nil
	}
	if len(list) > maxRules {
		d.fail(n, "there are %d rules, and may be %d in a file", len(list), maxRules)
		return nil
	}
	var out []*rule
	for i, item := range list {
		d.rule, d.place = fmt.Sprintf("number %d", i+1), ""
		if r := d.readRule(resolve(item)); r != nil {
			out = append(out, r)
		}
	}
	d.rule, d.place = "", ""
	return out
}

func isConfigMap(n *yaml.Node) bool {
	var object struct {
		Kind string `yaml:"kind"`
	}
	return n.Kind == yaml.MappingNode && n.Decode(&object) == nil && object.Kind == "ConfigMap"
}

func (d *decoder) readRule(n *yaml.Node) *rule {
	r := &rule{file: d.file, line: n.Line, column: n.Column, checkGeneration: true, content: d.content}
	var checks, otherwise *yaml.Node
	d.nameRule(n)
	ok := d.mapping(n, map[string]func(*yaml.Node){
		"group":      func(n *yaml.Node) { r.group = d.word(n, groupName, "the name of an API group") },
		"kinds":      func(n *yaml.Node) { r.kinds = d.words(n, kindName, "the name of a kind") },
		"versions":   func(n *yaml.Node) { r.versions = d.words(n, versionName, "a version such as v1beta1") },
		"generation": func(n *yaml.Node) { r.checkGeneration = d.oneOf(n, "observed", "ignored") != "ignored" },
		"checks":     func(n *yaml.Node) { checks = n },
		"else":       func(n *yaml.Node) { otherwise = n },
	}, "group", "kinds", "checks")
	if !ok {
		return nil
	}
	r.name = d.rule
	items := d.sequence(checks)
	if len(items) == 0 || len(items) > maxChecks {
		d.fail(checks, "there are %d checks, and have to be 1 to %d", len(items), maxChecks)
		return nil
	}
	for i, item := range items {
		d.place = fmt.Sprintf("check %d", i+1)
		r.checks = append(r.checks, d.readCheck(resolve(item), true))
	}
	if otherwise != nil {
		d.place = "else"
		r.checks = append(r.checks, d.readCheck(otherwise, false))
	}
	d.place = ""
	return r
}

// nameRule sets the name of a rule, its kinds and group, before the rule is read, so that all errors have it.
func (d *decoder) nameRule(n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		return
	}
	group, kinds := "", []string(nil)
	for i := 0; i+1 < len(n.Content); i += 2 {
		v := resolve(n.Content[i+1])
		switch {
		case n.Content[i].Value == "group" && groupName.MatchString(v.Value):
			group = v.Value
		case n.Content[i].Value == "kinds" && v.Kind == yaml.SequenceNode:
			for _, kind := range v.Content {
				if k := resolve(kind).Value; kindName.MatchString(k) && len(kinds) < 4 {
					kinds = append(kinds, k)
				}
			}
		}
	}
	if len(kinds) > 0 {
		d.rule = ruleName(strings.Join(kinds, ","), group)
	}
}

func ruleName(kind, group string) string {
	if group == "" {
		return kind
	}
	return kind + "." + group
}

func (d *decoder) readCheck(n *yaml.Node, conditional bool) *check {
	c := &check{line: n.Line}
	text := func(to *string) func(*yaml.Node) { return func(n *yaml.Node) { *to = d.text(n) } }
	keep := func(to **sourceExpression) func(*yaml.Node) {
		return func(n *yaml.Node) {
			*to = &sourceExpression{text: d.text(n), line: n.Line, column: n.Column, style: n.Style}
		}
	}
	var status, then, until *yaml.Node
	known := map[string]func(*yaml.Node){
		"status":     func(n *yaml.Node) { status = n; c.status = d.status(n) },
		"then":       func(n *yaml.Node) { then = n; c.then = d.status(n) },
		"reason":     func(n *yaml.Node) { c.reason = d.word(n, camelCase, "one CamelCase word") },
		"message":    text(&c.message),
		"condition":  text(&c.condition),
		"reasonFrom": keep(&c.source.reasonFrom),
		"detail":     keep(&c.source.detail),
		"since":      keep(&c.source.since),
		"until":      func(n *yaml.Node) { until = n; keep(&c.source.until)(n) },
	}
	required := []string{"status"}
	if conditional {
		known["when"] = keep(&c.source.when)
		required = append(required, "when")
	}
	if !d.mapping(n, known, required...) {
		return c
	}
	switch {
	case then != nil && until == nil:
		d.fail(then, "then requires until")
	case then != nil && (c.then == health.Healthy || c.then == c.status):
		d.fail(then, "then is %s: it has to differ from status, and cannot be Healthy", c.then)
	}
	if !conditional && until != nil && then == nil {
		d.fail(until, "until in else requires then")
	}
	d.texts(n, status, c)
	return c
}

// texts checks reason, message, detail and reasonFrom of a check.
func (d *decoder) texts(n, status *yaml.Node, c *check) {
	if !slices.Contains(statuses, c.status) {
		return // the required texts depend on the status
	}
	if c.isPlainHealthy() {
		if c.message != "" || c.source.detail != nil || c.source.reasonFrom != nil {
			d.fail(status, "Healthy has a message, detail or reasonFrom only with the reason of an idle object, such as Suspended")
		}
		return
	}
	if c.reason == "" {
		d.fail(n, "reason is missing: one CamelCase word")
	}
	switch {
	case strings.TrimSpace(c.message) == "":
		d.fail(n, "message is missing: give the words that follow the kind and the name, such as %q", "is not ready")
	case len(c.message) > maxDetail || strings.ContainsAny(c.message, "\n\r"):
		d.fail(n, "message is longer than a line of %d bytes", maxDetail)
	}
}

// mapping reads the fields of a mapping. Unknown and duplicate fields are errors. It returns false if the node is no
// mapping, or lacks a required field.
func (d *decoder) mapping(n *yaml.Node, known map[string]func(*yaml.Node), required ...string) bool {
	n = resolve(n)
	if n.Kind != yaml.MappingNode {
		d.fail(n, "this has to be a mapping with the fields %s", names(known))
		return false
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := resolve(n.Content[i])
		read, ok := known[key.Value]
		switch {
		case !ok || key.Kind != yaml.ScalarNode:
			d.fail(key, "the field %q is not known; there are %s", key.Value, names(known))
		case seen[key.Value]:
			d.fail(key, "duplicate field %q", key.Value)
		default:
			seen[key.Value] = true
			read(resolve(n.Content[i+1]))
		}
	}
	ok := true
	for _, name := range required {
		if !seen[name] {
			d.fail(n, "the field %q is missing", name)
			ok = false
		}
	}
	return ok
}

func names(known map[string]func(*yaml.Node)) string {
	all := make([]string, 0, len(known))
	for name := range known {
		all = append(all, name)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// resolve follows an alias.
func resolve(n *yaml.Node) *yaml.Node {
	for range 8 { // bounds a cycle; an alias refers to its anchor directly
		if n.Kind != yaml.AliasNode || n.Alias == nil {
			return n
		}
		n = n.Alias
	}
	return n
}

func (d *decoder) sequence(n *yaml.Node) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		d.fail(n, "this has to be a list")
		return nil
	}
	return n.Content
}

// text returns a string. An empty one needs quotes.
func (d *decoder) text(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
		d.fail(n, "this has to be a string; put it into quotes if it looks like something else")
		return ""
	}
	return n.Value
}

func (d *decoder) word(n *yaml.Node, form *regexp.Regexp, what string) string {
	text := d.text(n)
	if n.Tag == "!!str" && !form.MatchString(text) {
		d.fail(n, "%q is not %s", text, what)
		return ""
	}
	return text
}

func (d *decoder) words(n *yaml.Node, form *regexp.Regexp, what string) []string {
	items := d.sequence(n)
	if len(items) == 0 || len(items) > maxKinds {
		d.fail(n, "this has to be a list of 1 to %d", maxKinds)
		return nil
	}
	var out []string
	for _, item := range items {
		word := d.word(resolve(item), form, what)
		if slices.Contains(out, word) {
			d.fail(item, "duplicate %q", word)
			continue
		}
		out = append(out, word)
	}
	return out
}

func (d *decoder) oneOf(n *yaml.Node, words ...string) string {
	text := d.text(n)
	if !slices.Contains(words, text) {
		d.fail(n, "%q is not one of %s", text, strings.Join(words, ", "))
	}
	return text
}

func (d *decoder) status(n *yaml.Node) health.Status {
	text := d.text(n)
	if !slices.Contains(statuses, health.Status(text)) {
		d.fail(n, "%q is no status: give Healthy, Reconciling, Unhealthy, Down or Unknown", text)
	}
	return health.Status(text)
}
