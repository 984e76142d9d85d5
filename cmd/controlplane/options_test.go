package main

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
)

// docs/controlplane-flags.md has each flag with its default. Those of single sign-on are in docs/single-sign-on.md.
func TestOptions_DocumentHasEachFlag(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/controlplane-flags.md")
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile("`([^`]*)`")
	documented := map[string]string{} // the defaults by the names of the flags
	for line := range strings.SplitSeq(string(text), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || !strings.HasPrefix(cells[1], " `--") {
			continue
		}
		names, defaults := quoted.FindAllStringSubmatch(cells[1], -1), quoted.FindAllStringSubmatch(cells[2], -1)
		for i, name := range names {
			documented[strings.TrimPrefix(name[1], "--")] = ""
			if i < len(defaults) {
				documented[strings.TrimPrefix(name[1], "--")] = defaults[i][1]
			}
		}
	}
	delete(documented, "oidc-…")
	newOptions().flags.VisitAll(func(f *flag.Flag) {
		value, found := documented[f.Name]
		delete(documented, f.Name)
		switch {
		case strings.HasPrefix(f.Name, "oidc-"):
		case !found:
			t.Errorf("--%s is not in the document", f.Name)
		case value == "":
			if f.DefValue != "" && f.DefValue != "false" {
				t.Errorf("--%s has no default in the document, want %s", f.Name, f.DefValue)
			}
		case f.DefValue == "": // the text of the flag has its default
			if !strings.HasSuffix(f.Usage, "(default "+value+")") {
				t.Errorf("--%s has the default %s in the document: %s", f.Name, value, f.Usage)
			}
		default:
			if err := f.Value.Set(value); err != nil || f.Value.String() != f.DefValue {
				t.Errorf("--%s has the default %s in the document (%v), want %s", f.Name, value, err, f.DefValue)
			}
		}
	})
	for name := range documented {
		t.Errorf("the document has --%s, which does not exist", name)
	}
}
