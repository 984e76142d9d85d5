// Package scenario contains workloads that succeed or fail on a real node, each with a manifest and its moments. A moment is a
// state of the workload that lasts for a while and is the same in every run.
//
// The end-to-end tests deploy the workloads and compare the status in the control plane with [Step.Status]. The program
// hack/cmd/record records the objects of the API server at each moment; see package recording.
//
//	for _, s := range scenario.All() {
//		objects, err := s.Objects(env) // create them
//		err = s.Play(ctx, env, func(ctx context.Context, step scenario.Step, at recording.Snapshot) error { … })
//	}
//
// The workloads run the program internal/e2e/behave from the image localhost/behave:1, and need the cluster of package
// internal/e2e/cluster with its real node.
package scenario
