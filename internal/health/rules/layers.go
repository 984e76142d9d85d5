package rules

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/health"
)

// Layers combines rules. The first layer with a rule that applies wins.
type Layers []health.Rules

// Judge assesses an object by the first layer with a rule that applies.
func (l Layers) Judge(kind schema.GroupKind, object map[string]any, now time.Time) (health.Assessment, bool) {
	for _, layer := range l {
		if a, ok := layer.Judge(kind, object, now); ok {
			return a, true
		}
	}
	return health.Assessment{}, false
}

// Explain returns the decision of the first layer that decides on an object.
func (l Layers) Explain(kind schema.GroupKind, object map[string]any, now time.Time) (decision string) {
	for _, layer := range l {
		if e, can := layer.(health.Explainer); can {
			if decision = e.Explain(kind, object, now); decision != "" {
				return decision
			}
		}
	}
	return ""
}

// Covers reports whether a layer may have a rule for a kind.
func (l Layers) Covers(kind schema.GroupKind) bool {
	return slices.ContainsFunc(l, func(layer health.Rules) bool { return layer.Covers(kind) })
}
