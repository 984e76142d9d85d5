// Package catalogue holds health rules for the custom resources that people run most: one file a project. The agent
// and the kubectl plugin judge by them where there is no rule of the user's own. docs/health-rules.md describes how
// they are written; each one names what it reads, and why that is a sign of health.
package catalogue

import (
	"embed"
	"sync"

	"github.com/threeport/threeport-agent/internal/health/rules"
)

//go:embed *.yaml
var embedded embed.FS

// Rules returns the rules. They are read when they are asked for first, and the expressions of each when there is an
// object that it judges.
var Rules = sync.OnceValue(func() *rules.Set {
	set, _ := rules.Define(files()...) // a test checks them, and what is wrong judges nothing Healthy
	return set
})

func files() []rules.File {
	entries, _ := embedded.ReadDir(".") // it is in memory
	var out []rules.File
	for _, entry := range entries {
		data, _ := embedded.ReadFile(entry.Name())
		out = append(out, rules.File{Name: "config/health/" + entry.Name(), Data: data})
	}
	return out
}
