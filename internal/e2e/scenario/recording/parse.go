package recording

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// takenLine is the comment with the time of the moment.
const takenLine = "# The time of the moment: "

var taken = regexp.MustCompile(`(?m)^` + takenLine + `(\S+)$`)

// Parse parses the output of Text. Whole numbers are int64, as in the dynamic client.
func Parse(text []byte) (Snapshot, error) {
	s := Snapshot{Namespace: Namespace}
	if match := taken.FindSubmatch(text); match != nil {
		at, err := time.Parse(time.RFC3339, string(match[1]))
		if err != nil {
			return s, fmt.Errorf("parse recording: %w", err)
		}
		s.Taken = at
	}
	for reader := yamlutil.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return s, fmt.Errorf("parse recording: %w", err)
		}
		encoded, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			return s, fmt.Errorf("parse recording: %w", err)
		}
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(encoded); err != nil {
			return s, fmt.Errorf("parse recording: %w", err)
		}
		if obj.GetKind() == eventKind {
			s.Events = append(s.Events, obj)
		} else {
			s.Objects = append(s.Objects, obj)
		}
	}
}
