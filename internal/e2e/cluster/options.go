package cluster

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Component is a part of the control plane, by the name of its binary.
type Component string

// The components, in the order in which they are started.
const (
	Etcd              Component = "etcd"
	APIServer         Component = "kube-apiserver"
	ControllerManager Component = "kube-controller-manager"
	Scheduler         Component = "kube-scheduler"
	Kwok              Component = "kwok"
)

// The components of a real node, see [Options.RealNode].
const (
	nodeInit   Component = "nodeinit" // holds the node's namespaces
	Containerd Component = "containerd"
	Kubelet    Component = "kubelet"
)

// ctr is containerd's client. It is no part of a running cluster.
const ctr Component = "ctr"

// Kubectl is the client's binary. It is no part of a running cluster.
const Kubectl Component = "kubectl"

// BehaviourAnnotation on a Pod selects how it fails; its values are the constants below. A Pod without it
// runs well.
const BehaviourAnnotation = "kwok.threeport.io/behaviour"

// The values of BehaviourAnnotation.
const (
	CrashLoop = "crash-loop" // exits with code 1, repeatedly
	OOM       = "oom"        // is killed for its memory (exit code 137), repeatedly

	ImagePull = "image-pull" // its image cannot be pulled
	NotReady  = "not-ready"  // runs, but always fails its readiness probe
)

// All returns every component: a cluster in which workloads come up.
func All() []Component {
	return []Component{Etcd, APIServer, ControllerManager, Scheduler, Kwok}
}

// APIOnly returns the components of a bare API: objects are stored and watched, and nothing acts on them. It is
// up in a few seconds. Pods may be created without a ServiceAccount, since no controller makes the default one.
func APIOnly() []Component {
	return []Component{Etcd, APIServer}
}

// Options say what [Start] starts. The zero value is a whole cluster with one node.
type Options struct {
	// Components to run: empty means All(). Etcd and APIServer are always among them.
	Components []Component
	// RealNode adds a node that runs containers, beside the fake ones. It needs All() components, Linux, root, and
	// programs of the machine's: see [CanRunRealNode].
	RealNode bool
	// Nodes is the number of fake nodes, each with a capacity of 500 pods. 0 means 1 if kwok runs, negative means none.
	Nodes int
	// Log gets progress, a line per step, while binaries are built and the cluster starts. Nil means none.
	Log io.Writer
	// APIServerArgs are appended to kube-apiserver's own, so that they win.
	APIServerArgs []string
}

// Validate names the first field with a bad value, and what would be accepted.
func (o Options) Validate() error {
	for _, c := range o.Components {
		if !slices.Contains(All(), c) {
			return fmt.Errorf("cluster.Options.Components: unknown component %q, want any of %s", c, join(All()))
		}
	}
	if o.RealNode && len(o.withDefaults().Components) < len(All()) {
		return fmt.Errorf("cluster.Options.RealNode: a real node needs all of %s", join(All()))
	}
	if o.Nodes > 0 && !slices.Contains(o.withDefaults().Components, Kwok) {
		return fmt.Errorf("cluster.Options.Nodes: %d fake nodes need the component %q", o.Nodes, Kwok)
	}
	return nil
}

// withDefaults fills what was left open and puts the components into the order of All.
func (o Options) withDefaults() Options {
	want := append(slices.Clone(o.Components), APIOnly()...)
	if len(o.Components) == 0 {
		want = All()
	}
	o.Components = slices.DeleteFunc(All(), func(c Component) bool { return !slices.Contains(want, c) })
	if o.Nodes == 0 && slices.Contains(o.Components, Kwok) {
		o.Nodes = 1
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	return o
}

// join lists components for a message.
func join(components []Component) string {
	names := make([]string, 0, len(components))
	for _, c := range components {
		names = append(names, string(c))
	}
	return strings.Join(names, ", ")
}
