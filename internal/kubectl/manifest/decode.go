package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v2"
	kjson "k8s.io/apimachinery/pkg/util/json"
)

// maxRetries is how often the text of a document that cannot be read is looked through again for objects that it
// swallowed, as the line after one that was cut off.
const maxRetries = 8

// decode reads what is in a document: usually one object.
func decode(c chunk, left int) []Document {
	if c.limit > 0 {
		return []Document{{Line: c.line, Err: fmt.Errorf("the document is larger than %d MiB: give its objects as documents of their own", c.limit>>20)}}
	}
	value, err := c.value()
	if err == nil {
		return expand(c.line, value)
	}
	docs := []Document{{Line: c.line, Err: err}}
	at := nextObject(c.text)
	if at < 0 || left == 0 {
		return docs
	}
	inner := newSplitter(bytes.NewReader(c.text[at:]))
	inner.line = c.line + bytes.Count(c.text[:at], []byte("\n"))
	for {
		next, err := inner.next()
		if err != nil {
			return docs
		}
		docs = append(docs, decode(next, left-1)...)
	}
}

// nextObject returns where an object in JSON begins behind the first line of a text; -1 if none does.
func nextObject(text []byte) int {
	for at := 0; ; {
		newline := bytes.Index(text[at:], []byte("\n{"))
		if newline < 0 {
			return -1
		}
		if at += newline + 1; beginsObject(text[at:]) {
			return at
		}
	}
}

// value decodes a document. What looks like JSON may be YAML in flow style.
func (c chunk) value() (any, error) {
	var value any
	if !c.json {
		return c.yaml()
	}
	err := kjson.Unmarshal(c.text, &value)
	if err == nil {
		return value, nil
	}
	if len(c.text) <= maxYAML {
		if value, yamlErr := c.yaml(); yamlErr == nil {
			return value, nil
		}
	}
	return nil, fmt.Errorf("not JSON: %w", err)
}

func (c chunk) yaml() (any, error) {
	var value any
	if err := yaml.Unmarshal(c.text, &value); err != nil {
		return nil, errors.New(withFileLine(strings.ReplaceAll(err.Error(), "\n", " "), c.line))
	}
	return plain(value), nil
}

var lineOf = regexp.MustCompile(`^yaml: line (\d+):`)

// withFileLine makes the line of an error that in the file.
func withFileLine(message string, line int) string {
	found := lineOf.FindStringSubmatch(message)
	if found == nil {
		return "not YAML: " + strings.TrimPrefix(message, "yaml: ")
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		return message
	}
	return fmt.Sprintf("not YAML: line %d:%s", n+line-1, message[len(found[0]):])
}

// plain makes of what YAML decodes to what the JSON of an API server would: keys are strings, whole numbers int64.
func plain(value any) any {
	switch v := value.(type) {
	case map[any]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[text(key)] = plain(item)
		}
		return out
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
		return v
	case int:
		return int64(v)
	case uint64:
		return float64(v) // beyond int64, as in JSON
	case float64:
		return number(v)
	}
	return value
}

func number(v float64) any {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return fmt.Sprint(v) // there is no such number in JSON
	case v == math.Trunc(v) && math.Abs(v) < 1<<53:
		return int64(v)
	}
	return v
}

func text(key any) string {
	switch k := key.(type) {
	case string:
		return k
	case nil:
		return "null"
	}
	return fmt.Sprint(key)
}
