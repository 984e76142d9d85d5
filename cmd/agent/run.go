package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/controller"
	"github.com/threeport/threeport-agent/internal/controlplane"
	"github.com/threeport/threeport-agent/internal/notify"
	"github.com/threeport/threeport-agent/internal/observe"
	"github.com/threeport/threeport-agent/internal/outbox"
	"github.com/threeport/threeport-agent/internal/target"
	"github.com/threeport/threeport-agent/internal/watch"
)

// run wires the agent and runs it until the context ends.
func run(ctx context.Context, o *options) error {
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&o.logging)))
	klog.SetLogger(ctrl.Log)

	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the cluster (--kubeconfig, KUBECONFIG, or the pod's service account): %w", err)
	}
	config.UserAgent = "threeport-agent"
	mgr, err := newManager(o, config)
	if err != nil {
		return err
	}
	sender, carries, err := newSender(o)
	if err != nil {
		return err
	}
	clients, err := watch.NewClients(config)
	if err != nil {
		return err
	}

	targets := target.NewRegistry()
	box := outbox.New(carries)
	reconciler := controller.New(mgr.GetClient(), targets, accounts{box})
	watcher := watch.New(o.watch, clients, targets, box, watch.NewMetrics(metrics.Registry), ctrl.Log.WithName("watch"), reconciler.Changed)
	reconciler.Watch(watcher)
	notifier := notify.New(o.notify, box, sender, notify.NewMetrics(metrics.Registry, box.Pending), ctrl.Log.WithName("notify"))

	if err := reconciler.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("set up the controller: %w", err)
	}
	// The manager only logs the error of what ends after it was told to stop.
	flushed := make(chan error, 1)
	work := manager.RunnableFunc(func(ctx context.Context) error {
		err := pipeline(ctx, watcher, notifier)
		if ctx.Err() == nil {
			return err
		}
		flushed <- err
		return nil
	})
	if err := mgr.Add(work); err != nil {
		return fmt.Errorf("set up the pipeline: %w", err)
	}
	if err := addProbes(mgr, o.leaderElect, reconciler, watcher); err != nil {
		return err
	}
	err = mgr.Start(ctx)
	select {
	case flushErr := <-flushed:
		return errors.Join(err, flushErr)
	default:
		return err
	}
}

func newManager(o *options, config *rest.Config) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register the ThreeportWorkload type: %w", err)
	}
	stop := o.notify.ShutdownTimeout + 5*time.Second // the flush, and what comes before it
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                  scheme,
		Metrics:                 metricsserver.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:  o.probeAddress,
		LeaderElection:          o.leaderElect,
		LeaderElectionID:        "threeport-agent.control-plane.threeport.io",
		LeaderElectionNamespace: o.leaderElectionNamespace,
		// The process ends right after the manager, so that the next leader need not wait.
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       &stop,
	})
	if err != nil {
		return nil, fmt.Errorf("set up the manager: %w", err)
	}
	return mgr, nil
}

// newSender returns where reports go, and which of them have a place there.
func newSender(o *options) (notify.Sender, func(observe.Report) bool, error) {
	if o.sink == sinkStdout {
		return notify.NewLines(os.Stdout), nil, nil
	}
	client, err := controlplane.New(o.api)
	if err != nil {
		return nil, nil, err
	}
	api := notify.NewAPI(client)
	return api, api.Carries, nil
}

// pipeline runs watching and delivery. When the context ends, watching ends first, and delivery flushes
// what it left.
func pipeline(ctx context.Context, watcher *watch.Watcher, notifier *notify.Notifier) error {
	delivery, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	delivered := make(chan error, 1)
	go func() { delivered <- notifier.Run(delivery) }()
	err := watcher.Run(ctx)
	stop()
	return errors.Join(err, <-delivered)
}

// addProbes adds /healthz and /readyz. A replica is ready when every declared workload is tracked and the caches
// for it have synced, or when it waits to lead.
func addProbes(mgr ctrl.Manager, leaderElect bool, reconciler *controller.Reconciler, watcher *watch.Watcher) error {
	ready := func(req *http.Request) error {
		select {
		case <-mgr.Elected():
		default:
			if leaderElect {
				return nil
			}
			return errors.New("the agent has not started yet")
		}
		if err := reconciler.Ready(req.Context()); err != nil {
			return err
		}
		if !watcher.Ready() {
			return errors.New("caches have not synced yet")
		}
		return nil
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("add /healthz: %w", err)
	}
	if err := mgr.AddReadyzCheck("caches", ready); err != nil {
		return fmt.Errorf("add /readyz: %w", err)
	}
	return nil
}

// accounts lets the controller read the outbox.
type accounts struct{ *outbox.Outbox }

func (a accounts) Progress(instance target.Instance) controller.Progress {
	p := a.Outbox.Progress(instance)
	out := controller.Progress{Pending: p.Pending, Since: p.Since, LastError: p.LastError, Rejected: p.Rejected}
	for _, r := range p.Rejections {
		out.Rejections = append(out.Rejections, v1alpha1.Rejection{Report: r.Report, Reason: r.Reason, Time: metav1.NewTime(r.Time)})
	}
	return out
}
