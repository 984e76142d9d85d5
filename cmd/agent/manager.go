package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/agent/controller"
	"github.com/threeport/threeport-agent/internal/agent/leader"
	"github.com/threeport/threeport-agent/internal/version"
)

// noAddress turns a server off.
const noAddress = "0"

// stopMargin is the time for ending the informers, which comes before the flush.
const stopMargin = 5 * time.Second

// newManager returns the manager, whose cache has the ThreeportWorkloads without their lists. The function isLeading returns an error
// if this replica may have lost the lease; it is nil without an election.
func newManager(o *options, config *rest.Config, lists *controller.ResourceLists) (mgr ctrl.Manager, isLeading func() error, err error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, nil, fmt.Errorf("register the ThreeportWorkload type: %w", err)
	}
	if err := eventsv1.AddToScheme(scheme); err != nil {
		return nil, nil, fmt.Errorf("register the type of Events: %w", err)
	}
	options := ctrl.Options{
		Scheme:                 scheme,
		Metrics:                metricsserver.Options{BindAddress: noAddress}, // see addMetrics and addProbes
		HealthProbeBindAddress: noAddress,
		PprofBindAddress:       o.pprofAddress,
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.ThreeportWorkload{}: {Transform: lists.Transform},
		}},
		GracefulShutdownTimeout: new(o.notify.ShutdownTimeout + stopMargin),
	}
	if o.leaderElect {
		lease, err := leader.NewLease(config, o.leaderElectionNamespace)
		if err != nil {
			return nil, nil, err
		}
		lease.Configure(&options)
		isLeading = lease.Held
	}
	if mgr, err = ctrl.NewManager(config, options); err != nil {
		return nil, nil, fmt.Errorf("set up the manager: %w", err)
	}
	return mgr, isLeading, nil
}

// namespaceFile has the namespace of a pod.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// podNamespace returns the namespace of the agent's pod; empty outside a cluster.
func podNamespace() (string, error) {
	text, err := os.ReadFile(namespaceFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("find the namespace of the pod: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// newHeartbeat returns the heartbeat of the agent, which the statuses name. Outside a cluster, --leader-election-namespace is its
// namespace; without that flag there is none, and newHeartbeat returns nil.
func newHeartbeat(o *options, config *rest.Config, reconciler *controller.Reconciler, log logr.Logger) (*leader.Heartbeat, error) {
	namespace := o.leaderElectionNamespace
	if namespace == "" {
		var err error
		if namespace, err = podNamespace(); namespace == "" || err != nil {
			return nil, err
		}
	}
	client, err := coordinationclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("set up the heartbeat: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("set up the heartbeat: %w", err)
	}
	reconciler.SetLease(v1alpha1.LeaseReference{Namespace: namespace, Name: leader.HeartbeatName})
	return leader.NewHeartbeat(client.Leases(namespace), host, version.String(), reconciler.Working, log), nil
}
