package scenario

import "slices"

// All returns every scenario. Those that act on the node come last.
func All() []Scenario {
	return slices.Concat(cronJobs(), deployments(), containers(), probes(), ending(), jobs(), elsewhere(), node())
}

// Get returns a scenario by its name.
func Get(name string) (Scenario, bool) {
	for _, s := range All() {
		if s.Name == name {
			return s, true
		}
	}
	return Scenario{}, false
}
