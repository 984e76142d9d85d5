// Package cluster runs a real Kubernetes control plane on this machine: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler, and kwok in the place of kubelets. It serves `make cluster` and
// the tests, needs no container runtime and no root, and listens on the loopback interface only. With
// [Options.RealNode] it adds a node that runs containers, for which it needs both.
//
//	c, err := cluster.Start(ctx, cluster.Options{Nodes: 2, Log: os.Stderr})
//	if err != nil {
//		return err
//	}
//	defer c.Stop()
//	client, err := kubernetes.NewForConfig(c.Config())
//
// The binaries are built from the modules pinned in internal/e2e/cluster/pins, once per user and machine; see
// [FindBinaries].
//
// # Pods
//
// On the fake nodes no container ever runs. kwok plays the kubelet by the Stage documents in internal/e2e/cluster/stages: it moves each
// Pod's status along and writes the Events a kubelet would. A Pod runs well unless the annotation
// [BehaviourAnnotation] asks for one of the failures; internal/e2e/cluster/stages/README.md describes them.
//
// # The real node
//
// It is a kubelet and a containerd in namespaces of their own: processes, mounts, network, host name, IPC. So it
// is a machine within the machine, of which nothing can stay behind:
//
//   - Its first process, internal/e2e/cluster/nodeinit, reads a pipe from us. When that ends, because we stop or because we
//     were killed, it kills all others and removes the control groups. If it is killed itself, the kernel kills the
//     others, and the next Start removes the groups.
//   - Mounts, bridge, network namespaces of pods and their interfaces go with the namespaces. /run, /var/lib and
//     /var/log are the node's own, in memory. No iptables rule is made: nothing is forwarded.
//   - The kernel's settings that a kubelet demands are shown to it, and not made.
//
// Its network has no way out. Connections cross its border where [Cluster.Publish] lets them: so the API server is
// there at the address of the Service "kubernetes", and a control-plane API on this machine can be. The API server
// reaches the kubelet through an egress proxy, so kubectl logs, exec and port-forward work. There is no kube-proxy and
// no DNS: pods reach each other by address.
//
// Images come from no registry: [Cluster.LoadImage]. Pods go to the real node, since the fake ones have the taint
// kwok.x-k8s.io/node=fake:NoSchedule beside it. A node that is lost is noticed after 20 seconds, and its pods are
// evicted after 10 more.
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
