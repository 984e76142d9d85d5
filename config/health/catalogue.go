// Package catalogue has health rules for common custom resources, one file for each project or group of projects. The agent and the kubectl
// plugin use them unless the user has a rule. docs/health-rules.md describes the format. Each file names its sources.
package catalogue

import (
	"embed"
	"sync"

	"github.com/threeport/threeport-agent/internal/health/rules"
)

//go:embed *.yaml
var embedded embed.FS

// Rules returns the rules. They are read on first use, and the expressions of a rule are compiled for its first object.
var Rules = sync.OnceValue(func() *rules.Set {
	set, _ := rules.Define(files()...) // a test finds errors, and an invalid rule makes nothing Healthy
	return set
})

func files() []rules.File {
	entries, _ := embedded.ReadDir(".") // embedded files are always readable
	var out []rules.File
	for _, entry := range entries {
		data, _ := embedded.ReadFile(entry.Name())
		out = append(out, rules.File{Name: "config/health/" + entry.Name(), Data: data})
	}
	return out
}
