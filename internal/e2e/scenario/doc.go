// Package scenario holds workloads that go well or badly on a real node, each as a manifest, and the moments that
// it comes to. A moment is defined so sharply that a repeat finds the same state, and it holds for a while.
//
// The end-to-end tests deploy them and compare what the control plane shows with [Step.Status]; `make record-fixtures` writes
// down what the API server holds in each moment, see package recording.
//
//	for _, s := range scenario.All() {
//		objects, err := s.Objects(namespace) // create them
//		err = s.Play(ctx, env, func(ctx context.Context, step scenario.Step, at recording.Snapshot) error { … })
//	}
//
// The workloads run the program internal/e2e/behave from the image localhost/behave:1, and need the cluster of package
// internal/e2e/cluster with its real node.
package scenario
