package operators

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/e2e/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/scenario"
	"github.com/threeport/threeport-agent/internal/e2e/scenario/recording"
)

//go:embed manifests
var manifests embed.FS

// Operator is an operator with the scenarios of its custom resources.
type Operator struct {
	Name     string
	programs []program
	// crds are modules with the files or folders of their CustomResourceDefinitions.
	crds []crds
	// setup are objects without a namespace that its workloads need.
	setup string
	// perNamespace means that each scenario has its own processes, which see only its namespace.
	perNamespace bool
	// source starts a server that the operator reads from; nil for none.
	source    func(ctx context.Context, dir string) (*source, error)
	resources []recording.Resource
	scenarios []scenario.Scenario
}

// program is a program of an operator.
type program struct {
	// pin is the folder in pins.
	pin string
	// module is the pinned module, and command its main package; "." for the main package of the pin.
	module, command string
	// args returns the command line.
	args func(p *place) ([]string, error)
}

// crds are CustomResourceDefinitions in a module that a pin requires.
type crds struct {
	pin, module string
	paths       []string
}

// All returns the operators.
func All() []Operator {
	return []Operator{certManager(), externalSecrets(), argoRollouts(), flux(), contour()}
}

// Scenarios returns the scenarios of the operator, in the order of their names' groups.
func (o Operator) Scenarios() []scenario.Scenario {
	files, _ := fs.Sub(manifests, "manifests") // the folder is embedded
	of := &scenario.Operator{Manifests: files, Resources: o.resources, Versions: o.versions()}
	var out []scenario.Scenario
	for _, s := range o.scenarios {
		s.Operator = of
		out = append(out, s)
	}
	return out
}

// versions names the programs with their versions.
func (o Operator) versions() string {
	var out []string
	for _, p := range o.programs {
		out = append(out, p.pin+" "+version(p.pin, p.module))
	}
	return strings.Join(out, " and ")
}

// version returns the version of a module in the go.mod of a pin.
func version(pin, module string) string {
	root, err := cluster.SourceTree()
	if err != nil {
		return "unknown"
	}
	text, err := os.ReadFile(filepath.Join(pinFolder(root, pin), "go.mod"))
	if err != nil {
		return "unknown"
	}
	found := regexp.MustCompile(`(?m)^(?:require)?\s*` + regexp.QuoteMeta(module) + ` (v\S+)`).FindSubmatch(text)
	if found == nil {
		return "unknown"
	}
	return string(found[1])
}

func pinFolder(root, pin string) string {
	return filepath.Join(root, "internal", "e2e", "operators", "pins", pin)
}

// custom is a custom resource to record.
func custom(kind, group, version, resource string) recording.Resource {
	return recording.Resource{Kind: kind, GroupVersionResource: schema.GroupVersionResource{
		Group: group, Version: version, Resource: resource,
	}}
}

// find returns the operator of a scenario.
func find(name string) (Operator, error) {
	for _, o := range All() {
		for _, s := range o.scenarios {
			if s.Name == name {
				return o, nil
			}
		}
	}
	return Operator{}, fmt.Errorf("no operator has the scenario %q", name)
}
