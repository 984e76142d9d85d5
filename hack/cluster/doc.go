// Package cluster runs a real Kubernetes control plane on this machine: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler, and kwok in the place of kubelets. It serves `make cluster` and
// the tests, needs no container runtime and no root, and listens on the loopback interface only.
//
//	c, err := cluster.Start(ctx, cluster.Options{Nodes: 2, Log: os.Stderr})
//	if err != nil {
//		return err
//	}
//	defer c.Stop()
//	client, err := kubernetes.NewForConfig(c.Config())
//
// The binaries are built from the modules pinned in hack/cluster/pins, once per user and machine; see
// [FindBinaries].
//
// # Pods
//
// No container ever runs. kwok plays the kubelet by the Stage documents in hack/cluster/stages: it moves each
// Pod's status along and writes the Events a kubelet would. A Pod runs well unless the annotation
// [BehaviourAnnotation] asks for one of the failures; hack/cluster/stages/README.md describes them.
//
// # Lifecycle
//
// A [Cluster] owns its processes, their ports and one run directory. [Cluster.Stop] ends all three and waits.
// If this process dies without stopping, the kernel kills the children (Linux only; elsewhere they have to be
// ended by hand), and the next [Start] removes the directory. A component that dies by itself closes
// [Cluster.Done], and [Cluster.Err] then has the last lines of its log.
//
// # Concurrency
//
// All methods of Cluster may be called from several goroutines. Several clusters may run at once, in one
// process or in many.
package cluster
