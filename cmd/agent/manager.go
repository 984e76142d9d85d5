package main

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/agent/leader"
)

// stopMargin is the time for ending the informers, which comes before the flush.
const stopMargin = 5 * time.Second

// newManager returns the manager. The function isLeading returns an error if this replica may have lost the lease; it is
// nil without an election.
func newManager(o *options, config *rest.Config) (mgr ctrl.Manager, isLeading func() error, err error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, nil, fmt.Errorf("register the ThreeportWorkload type: %w", err)
	}
	options := ctrl.Options{
		Scheme:                  scheme,
		Metrics:                 o.metrics.server(),
		HealthProbeBindAddress:  o.probeAddress,
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
