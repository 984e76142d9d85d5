// Package cluster runs a real Kubernetes control plane on this machine: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler, and kwok instead of kubelets. It needs neither a container runtime nor root, and
// listens only on the loopback interface. With [Options.RealNode] it adds a node that runs containers, and needs both.
//
//	c, err := cluster.Start(ctx, cluster.Options{Nodes: 2, Log: os.Stderr})
//	if err != nil {
//		return err
//	}
//	defer c.Stop()
//	client, err := kubernetes.NewForConfig(c.Config())
//
// The binaries are built from the modules pinned in internal/e2e/cluster/pins, once per user and machine; see
// [FindBinaries]. [KubernetesEnv] chooses another minor of Kubernetes.
//
// # Pods
//
// On the fake nodes no container runs. kwok simulates the kubelet with the Stage documents in internal/e2e/cluster/stages: it
// updates the status of each Pod and creates the Events of a kubelet. A Pod succeeds unless the annotation [BehaviourAnnotation]
// selects a failure; internal/e2e/cluster/stages/README.md describes the failures.
//
// # The real node
//
// The real node is a kubelet and a containerd in their own namespaces (PID, mount, network, UTS, IPC). Their end leaves
// no processes, mounts or interfaces:
//
//   - Its first process, internal/e2e/cluster/nodeinit, reads a pipe from the process that started the cluster. When the pipe is
//     closed, it kills all other processes and removes the control groups. If it is killed itself, the kernel kills the other
//     processes, and the next Start removes the groups.
//   - Mounts, the bridge, network namespaces of pods and their interfaces end with the namespaces. /run, /var/lib and /var/log
//     are in memory. There are no iptables rules, because nothing is forwarded.
//   - Kernel settings that a kubelet requires are not changed; the node only sees the required values.
//
// The network of the node is isolated. [Cluster.Publish] makes addresses of this machine available in it: the API server at the
// address of the Service "kubernetes", and optionally a control-plane API. The API server reaches the kubelet through an egress
// proxy, so kubectl logs, exec and port-forward work. There is no kube-proxy and no DNS: pods reach each other by address.
//
// There is no registry; [Cluster.LoadImage] loads images. Pods run on the real node, because the fake nodes then have the taint
// kwok.x-k8s.io/node=fake:NoSchedule. A lost node is detected after 20 s, and its pods are evicted 10 s later.
//
// # Lifecycle
//
// A [Cluster] owns its processes, their ports and one run directory. [Cluster.Stop] releases all three. If this process dies
// without calling it, the kernel kills the children (only on Linux), and the next [Start] removes the directory. The death of a
// component closes [Cluster.Done], and [Cluster.Err] has the last lines of its log.
//
// # Concurrency
//
// All methods of Cluster may be called from several goroutines. Several clusters may run at once, in one
// process or in many.
package cluster
