// Package operators runs operators of other projects on a local control plane, and has scenarios of their custom resources. The
// recorder, hack/cmd/record, records the status that the real controllers write; see package scenario.
//
//	running, err := operators.Start(ctx, cluster, os.Stderr, operators.All()...)
//	defer running.Stop()
//	for _, o := range operators.All() {
//		for _, s := range o.Scenarios() { … }
//	}
//
// Each program is pinned by a module in the folder pins, and built as the cluster's own binaries are. The command of cert-manager is in
// a module that cannot be required, so its pin has a small main package that runs the controllers. All programs listen only on the
// loopback interface, and end with this process. Pods run on kwok's fake node.
package operators
