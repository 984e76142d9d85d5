package health

import (
	"fmt"
	"slices"
	"strings"
	"unique"
)

// ObjectRef names an object in a verdict.
type ObjectRef struct{ Kind, Name string }

// String returns the reference in the form of messages: "ReplicaSet web-78".
func (r ObjectRef) String() string { return r.Kind + " " + r.Name }

// OwnerPath lists the owners between a resource and one of its dependents, the resource's own child first. Paths with
// the same owners are equal, so that a path can be part of a map key. The zero value is the path of a direct child.
type OwnerPath struct{ last unique.Handle[pathStep] }

// pathStep is the last owner of a path and the path before it. Dependents of one owner share it.
type pathStep struct {
	before OwnerPath
	owner  ObjectRef
}

// Append returns the path with one more owner at its end.
func (p OwnerPath) Append(owner ObjectRef) OwnerPath {
	return OwnerPath{unique.Make(pathStep{before: p, owner: owner})}
}

// IsEmpty reports whether the resource itself is the owner.
func (p OwnerPath) IsEmpty() bool { return p == OwnerPath{} }

// Last returns the owner next to the dependent; zero if the resource itself is the owner.
func (p OwnerPath) Last() ObjectRef {
	if p.IsEmpty() {
		return ObjectRef{}
	}
	return p.last.Value().owner
}

// Owners returns the owners, the resource's own child first.
func (p OwnerPath) Owners() []ObjectRef {
	var owners []ObjectRef
	for !p.IsEmpty() {
		step := p.last.Value()
		owners = append(owners, step.owner)
		p = step.before
	}
	slices.Reverse(owners)
	return owners
}

// Includes reports whether one of the owners has a kind.
func (p OwnerPath) Includes(kind string) bool {
	return slices.ContainsFunc(p.Owners(), func(owner ObjectRef) bool { return owner.Kind == kind })
}

// String returns the path in the form of messages, from the dependent to the resource: "Job backup-3 → CronJob backup".
func (p OwnerPath) String() string {
	var names []string
	for _, owner := range slices.Backward(p.Owners()) {
		names = append(names, owner.String())
	}
	return strings.Join(names, causeSeparator)
}

// Cause is the chain from the status of a resource to the dependents that explain it. The zero value has no dependents.
type Cause struct {
	// Effect is the message about the resource itself, or the resource's name if it has none.
	Effect string
	Path   OwnerPath
	Group  CauseGroup
	// Serving counts the Pods that serve while a rollout fails: "3 of 3 old pods serve, 0 of 1 new ready"; else empty.
	Serving string
	// Others is the number of further causes that are worse than Reconciling.
	Others int
}

// CauseGroup is a group of dependents that are not Healthy for the same cause.
type CauseGroup struct {
	Kind string
	// Name is the name of the only dependent in the group; empty if there are more.
	Name            string
	Count           int
	Reason, Message string
}

// causeSeparator separates a cause from its effect in a message. The root cause is first, because narrow tables cut off the
// end of a text.
const causeSeparator = " → "

// Length limits for the parts of a cause in a message, in bytes.
const (
	maxEffect = 500
	maxPath   = 300
	maxGroup  = 500
)

// String renders the chain: "5 pods ImagePullBackOff: image example/app:9 cannot be pulled → ReplicaSet web-78 →
// Deployment web has 0 of 5 replicas ready". It has no times, because the start of a status and of its reason are fields of
// their own.
func (c Cause) String() string {
	others := ""
	switch {
	case c.Others == 1:
		others = "and 1 other cause"
	case c.Others > 1:
		others = fmt.Sprintf("and %d other causes", c.Others)
	}
	root := strings.Join(nonEmpty(c.Group.String(), c.Serving, others), "; ")
	links := nonEmpty(root, truncate(c.Path.String(), maxPath), truncate(c.Effect, maxEffect))
	return strings.Join(links, causeSeparator)
}

// String renders the group: "5 pods ImagePullBackOff: image example/app:9 cannot be pulled".
func (g CauseGroup) String() string {
	text := fmt.Sprintf("%d %ss", g.Count, strings.ToLower(g.Kind))
	if g.Name != "" || g.Count == 1 {
		text = ObjectRef{g.Kind, g.Name}.String()
	}
	text += " " + g.Reason
	if g.Message != "" {
		text += ": " + g.Message
	}
	return truncate(text, maxGroup)
}

// nonEmpty returns the texts that are not empty.
func nonEmpty(texts ...string) []string {
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}
