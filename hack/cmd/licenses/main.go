// Licenses checks the licenses in software bills of materials: `licenses FILE...`. The files are CycloneDX as JSON, as `make
// sbom` writes them. It exits with code 1 if a component has no license, or one that is not in the list of allowed ones.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// allowed has the SPDX identifiers of the licenses under which the programs may distribute a component. They ask for a notice,
// and not for the source of the whole program. The detector takes some texts of BSD-3-Clause for BSD-Source-Code.
var allowed = []string{"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSD-Source-Code", "ISC", "MIT", "MPL-2.0"}

// known has the licenses of modules that the detector does not recognize, as somebody read them in the module.
var known = map[string]string{
	"github.com/pressly/goose/v3": "MIT", // with two notices of copyright
}

// bill is the part of a bill of materials that is checked.
type bill struct {
	Components []component `json:"components"`
}

type component struct {
	Name     string   `json:"name"`
	Version  string   `json:"version"`
	Licenses licenses `json:"licenses"`
	Evidence struct {
		Licenses licenses `json:"licenses"`
	} `json:"evidence"`
}

type licenses []struct {
	License struct {
		ID   string `json:"id"`
		Name string `json:"name"` // without an identifier
	} `json:"license"`
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

func run(files []string, out io.Writer) error {
	if len(files) == 0 {
		return fmt.Errorf("no file given: run `make sbom`, which writes the bills of materials and checks them")
	}
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // the file that the caller names
		if err != nil {
			return err
		}
		counts, err := check(text)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		_, _ = fmt.Fprintf(out, "%s: %s\n", file, counts)
	}
	return nil
}

// check returns the number of components per license.
func check(text []byte) (string, error) {
	var found bill
	if err := json.Unmarshal(text, &found); err != nil {
		return "", fmt.Errorf("read the bill of materials: %w", err)
	}
	if len(found.Components) == 0 {
		return "", fmt.Errorf("the bill of materials has no components")
	}
	var refused []string
	counts := map[string]int{}
	for _, c := range found.Components {
		names := c.names()
		if len(names) == 0 {
			refused = append(refused, c.Name+" "+c.Version+" has no license that the detector knows")
		}
		for _, name := range names {
			counts[name]++
			if !slices.Contains(allowed, name) {
				refused = append(refused, c.Name+" "+c.Version+" has the license "+name)
			}
		}
	}
	if len(refused) > 0 {
		return "", fmt.Errorf("only %s are allowed:\n  %s", strings.Join(allowed, ", "), strings.Join(refused, "\n  "))
	}
	var lines []string
	for _, name := range allowed {
		if counts[name] > 0 {
			lines = append(lines, fmt.Sprintf("%d %s", counts[name], name))
		}
	}
	return strings.Join(lines, ", "), nil
}

// names are the licenses that the author declares, and those that were detected.
func (c component) names() (names []string) {
	for _, l := range slices.Concat(c.Licenses, c.Evidence.Licenses) {
		name := l.License.ID
		if name == "" {
			name = l.License.Name
		}
		names = append(names, name)
	}
	if name := known[c.Name]; name != "" && len(names) == 0 {
		names = append(names, name)
	}
	return names
}
