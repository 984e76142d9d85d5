// Package configfile reads the configuration file of a program. Its settings are the program's flags, by their names:
//
//	apiVersion: agent.threeport.io/v1alpha1
//	kind: AgentConfig
//	send-concurrency: 16
//	watch-namespaces: [shop, cart]
//
// A flag on the command line has precedence over the file.
package configfile

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Format is the format of a program's files.
type Format struct {
	// APIVersion and Kind are in each file. An incompatible change of the settings needs another APIVersion.
	APIVersion, Kind string
	// FlagsOnly are the flags that a file cannot set.
	FlagsOnly []string
}

// The bounds of a file. A log line may have the whole error.
const (
	maxBytes    = 64 << 10
	maxMistakes = 20 // are named
)

// Settings are the flags that a file sets, by name.
type Settings map[string]Setting

// Setting is the value of a flag in a file, as on the command line, and its line, from 1.
type Setting struct {
	Value string
	Line  int
}

// Apply sets the flags of a file, except those that are set already, and returns them. The error has one line for each mistake, with
// its place and the accepted values. Flags may be set then.
func (f Format) Apply(name string, data []byte, flags *flag.FlagSet) (Settings, error) {
	if len(data) > maxBytes {
		return nil, fmt.Errorf("%s: the file has %d bytes: give %d at most", name, len(data), maxBytes)
	}
	root, err := parse(name, data)
	if err != nil {
		return nil, err
	}
	given := map[string]bool{}
	flags.Visit(func(fl *flag.Flag) { given[fl.Name] = true })
	settings, lines := Settings{}, map[string]int{}
	header := map[string]string{"apiVersion": f.APIVersion, "kind": f.Kind}
	var errs []error
	for i := 0; i+1 < len(root.Content) && len(errs) < maxMistakes; i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if before := lines[key.Value]; before > 0 {
			errs = append(errs, fmt.Errorf("%s:%d: %.99s is also in line %d", name, key.Line, key.Value, before))
			continue
		}
		lines[key.Value] = key.Line
		var err error
		if want, isHeader := header[key.Value]; isHeader {
			err = checkHeader(key.Value, value, want)
		} else if !f.isSetting(flags, key.Value) {
			err = fmt.Errorf("there is no setting %.99q", key.Value)
		} else if text, textErr := textOf(value); textErr != nil {
			err = fmt.Errorf("%s: %w", key.Value, textErr)
		} else if !given[key.Value] {
			settings[key.Value] = Setting{text, key.Line}
			if setErr := flags.Set(key.Value, text); setErr != nil {
				err = fmt.Errorf("%s is %.99q: %w", key.Value, text, setErr)
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", name, key.Line, err))
		}
	}
	for _, key := range []string{"apiVersion", "kind"} {
		if lines[key] == 0 {
			errs = append(errs, fmt.Errorf("%s:1: %s is missing: give %s", name, key, header[key]))
		}
	}
	if len(errs) > 0 {
		errs = append(errs, fmt.Errorf("the settings are %s", strings.Join(f.settings(flags), ", ")))
	}
	return settings, errors.Join(errs...)
}

// checkHeader checks the value of apiVersion or kind.
func checkHeader(key string, value *yaml.Node, want string) error {
	if value.Value != want {
		return fmt.Errorf("%s is %.99q: give %s", key, value.Value, want)
	}
	return nil
}

// parse returns the mapping of a file's only document.
func parse(name string, data []byte) (*yaml.Node, error) {
	var document, more yaml.Node
	decoder := yaml.NewDecoder(strings.NewReader(string(data)))
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %s", name, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if document.Kind == 0 { // an empty file
		return &yaml.Node{}, nil
	}
	if root := document.Content[0]; root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s:%d: this is no list of settings: give lines NAME: VALUE", name, root.Line)
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s:%d: the file has more than one document: give one", name, max(more.Line, 1))
	}
	return document.Content[0], nil
}

// textOf returns a value as on the command line: a list is separated by commas.
func textOf(value *yaml.Node) (string, error) {
	if value.Kind == yaml.AliasNode {
		value = value.Alias
	}
	switch {
	case value.Kind == yaml.ScalarNode && value.Tag == "!!null":
		return "", errors.New("the value is missing")
	case value.Kind == yaml.ScalarNode:
		return value.Value, nil
	case value.Kind != yaml.SequenceNode:
		return "", errors.New("give one value, or a list of values")
	}
	texts := make([]string, len(value.Content))
	for i, item := range value.Content {
		if item.Kind != yaml.ScalarNode {
			return "", errors.New("give one value, or a list of values")
		}
		texts[i] = item.Value
	}
	return strings.Join(texts, ","), nil
}

func (f Format) isSetting(flags *flag.FlagSet, name string) bool {
	return flags.Lookup(name) != nil && !slices.Contains(f.FlagsOnly, name)
}

// settings returns the names of all settings, in their order.
func (f Format) settings(flags *flag.FlagSet) (names []string) {
	flags.VisitAll(func(fl *flag.Flag) {
		if f.isSetting(flags, fl.Name) {
			names = append(names, fl.Name)
		}
	})
	return names
}

// Print writes a file with all settings as comments: what each means, and its default.
func (f Format) Print(w io.Writer, flags *flag.FlagSet) error {
	var text strings.Builder
	fmt.Fprintf(&text, "apiVersion: %s\nkind: %s\n", f.APIVersion, f.Kind)
	for _, name := range f.settings(flags) {
		fl := flags.Lookup(name)
		fmt.Fprintf(&text, "\n# %s\n# %s: %s\n", strings.ReplaceAll(fl.Usage, "\n", "\n# "), name, literal(fl.DefValue))
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// literal returns a value in YAML.
func literal(value string) string {
	var node yaml.Node
	if err := yaml.Unmarshal([]byte(value), &node); err == nil && len(node.Content) == 1 && node.Content[0].Kind == yaml.ScalarNode && node.Content[0].Value == value && value != "" {
		return value
	}
	quoted, err := json.Marshal(value)
	if err != nil {
		return value // a string is always encoded
	}
	return string(quoted)
}
