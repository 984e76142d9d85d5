package reload

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// Items returns the items of the YAML documents of a file. Each document is a mapping with one field, which is a list. A file without
// documents is an error: a truncated file must not remove items silently.
func Items(f File, field string) (items []*yaml.Node, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(f.Data))
	for found := false; ; found = true {
		var document yaml.Node
		switch err := decoder.Decode(&document); {
		case errors.Is(err, io.EOF) && !found:
			return nil, fmt.Errorf("%s: there are no %s in it: write %q if that is meant", f.Name, field, field+": []")
		case errors.Is(err, io.EOF):
			return items, nil
		case err != nil:
			return nil, fmt.Errorf("%s: this is not YAML: %w", f.Name, err)
		}
		list := &document
		if len(document.Content) > 0 {
			list = document.Content[0]
		}
		if list.Kind == yaml.MappingNode && len(list.Content) == 2 && list.Content[0].Value == field {
			if values := list.Content[1]; values.Kind == yaml.SequenceNode {
				items = append(items, values.Content...)
				continue
			}
		}
		return nil, fmt.Errorf("%s:%d: give a mapping with the field %s only, which is a list", f.Name, list.Line, field)
	}
}
