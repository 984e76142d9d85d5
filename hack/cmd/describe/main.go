// Command describe prints the doc comments of struct types in Go files as JSON, for the OpenAPI document. Each type has an
// object with the comments of fields by their JSON names, and the comment of the type by the empty name.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "describe:", err)
		os.Exit(1)
	}
}

func run(files []string) error {
	all := map[string]map[string]string{}
	for _, file := range files {
		types, err := runtime.ParseDocumentationFrom(file)
		if err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		for _, t := range types {
			texts := map[string]string{}
			for i, pair := range t {
				name := pair.Name
				if i == 0 { // the type itself
					name = ""
				}
				if pair.Doc != "" {
					texts[name] = withoutLinkBrackets(pair.Doc)
				}
			}
			all[t[0].Name] = texts
		}
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	if err := out.Encode(all); err != nil {
		return fmt.Errorf("print descriptions: %w", err)
	}
	return nil
}

// withoutLinkBrackets returns a comment without the brackets of doc links.
func withoutLinkBrackets(comment string) string {
	return strings.NewReplacer(`\"`, `"`, `\n`, "\n", "[", "", "]", "").Replace(comment)
}
