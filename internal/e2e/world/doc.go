// Package world has the environment of a test of the whole agent.
//
// A [World] has a Kubernetes cluster, a namespace in it and clients. It runs the control-plane API and agents as processes,
// declares workloads, and waits for conditions in the cluster and in the rows of the control plane. Each failure names the
// condition and the last observation.
//
//	w := world.New(t, c)
//	w.StartControlPlane(binary, "--auth-enabled=false")
//	d := w.Deploy("web", world.ConfigMap("conf"))
//	w.ExpectStatus(d, "Healthy")
//
// A suite embeds *World in a type of its own and adds the parts that only this suite needs.
//
// The methods may be called only from the test's goroutine, because they end the test on a failure.
package world
