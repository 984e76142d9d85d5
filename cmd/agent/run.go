package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
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
	"github.com/threeport/threeport-agent/internal/agent/controller"
	"github.com/threeport/threeport-agent/internal/agent/informers"
	"github.com/threeport/threeport-agent/internal/agent/journal"
	"github.com/threeport/threeport-agent/internal/agent/notify"
	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/resync"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/health/rules"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// run wires the agent and runs it until the context ends.
func run(ctx context.Context, o *options) (err error) {
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&o.logging)))
	klog.SetLogger(ctrl.Log)

	judging, ownRules, err := openRules(o.healthRules, metrics.Registry)
	if err != nil {
		return err
	}
	o.watch.Rules = judging

	state, err := openState(o.stateDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, state.Close()) }()

	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the cluster (--kubeconfig, KUBECONFIG, or the pod's service account): %w", err)
	}
	config.UserAgent = "threeport-agent"
	mgr, leads, err := newManager(o, config)
	if err != nil {
		return err
	}
	o.api.Allowed = leads
	clients, err := informers.NewClients(config)
	if err != nil {
		return err
	}
	sender, link, client, err := newSender(o, clients)
	if err != nil {
		return err
	}

	targets := target.NewRegistry()
	box := outbox.New(o.outbox, state)
	o.watch.Delivery = box.DeliveryCounts
	reconciler := controller.New(mgr.GetClient(), targets, accounts{box, state})
	watcher := informers.New(o.watch, clients, targets, box, state, informers.NewMetrics(metrics.Registry), ctrl.Log.WithName("watch"), reconciler.Changed)
	reconciler.Watch(watcher)
	if link != nil {
		link.Attach(box, watcher.Detail)
	}
	auditor := resync.New(o.audit, inventory{watcher, reconciler}, box, client, resync.NewMetrics(metrics.Registry), ctrl.Log.WithName("audit"))
	notifier := notify.New(o.notify, box, sender, auditor, notify.NewMetrics(metrics.Registry, box), ctrl.Log.WithName("notify"))

	if err := reconciler.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("set up the controller: %w", err)
	}
	// The manager only logs the error of what ends after it was told to stop.
	flushed := make(chan error, 1)
	work := manager.RunnableFunc(func(leading context.Context) error {
		err := pipeline(leading, ctx, ownRules, link, watcher, auditor, notifier)
		if state != nil && errors.Is(err, notify.ErrNotFlushed) {
			ctrl.Log.Info("Reports were left; they are kept in --state-dir, or read anew", "left", box.Pending())
			err = nil
		}
		if leading.Err() == nil {
			return err
		}
		flushed <- err
		return nil
	})
	if err := mgr.Add(work); err != nil {
		return fmt.Errorf("set up the pipeline: %w", err)
	}
	if err := addProbes(mgr, o.leaderElect, reconciler, watcher, state); err != nil {
		return err
	}
	addStateMetrics(metrics.Registry, state)
	err = mgr.Start(ctx)
	select {
	case flushErr := <-flushed:
		return errors.Join(err, flushErr)
	default:
		return err
	}
}

// newManager returns the manager, and what tells whether this replica leads for sure; nil if there is no election.
func newManager(o *options, config *rest.Config) (mgr ctrl.Manager, leads func() error, err error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, nil, fmt.Errorf("register the ThreeportWorkload type: %w", err)
	}
	stop := o.notify.ShutdownTimeout + 5*time.Second // the flush, and what comes before it
	options := ctrl.Options{
		Scheme:                  scheme,
		Metrics:                 metricsserver.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:  o.probeAddress,
		GracefulShutdownTimeout: &stop,
	}
	if o.leaderElect {
		lease, err := newLease(config, o.leaderElectionNamespace)
		if err != nil {
			return nil, nil, err
		}
		leads = lease.held
		options.LeaderElection = true
		options.LeaderElectionResourceLockInterface = lease
		options.LeaseDuration, options.RenewDeadline, options.RetryPeriod = new(leaseDuration), new(renewDeadline), new(renewPeriod)
		// The process ends right after the manager, so that the next leader need not wait.
		options.LeaderElectionReleaseOnCancel = true
	}
	if mgr, err = ctrl.NewManager(config, options); err != nil {
		return nil, nil, fmt.Errorf("set up the manager: %w", err)
	}
	return mgr, leads, nil
}

// newSender returns where reports go, and the link to the control plane and a client of it if they go there, and sets what
// of them has a place there. Without a client there is nothing to adopt or to audit.
func newSender(o *options, clients *informers.Clients) (notify.Sender, *notify.Link, *threeport.Client, error) {
	if o.sink == sinkStdout {
		o.audit.Interval = 0
		return notify.OneByOne(notify.NewStdoutSender(os.Stdout)), nil, nil, nil
	}
	client, err := threeport.New(o.api)
	if err != nil {
		return nil, nil, nil, err
	}
	if !o.reportSets {
		api := notify.NewV0Sender(client)
		o.outbox.Supports, o.outbox.InitialSync = api.Supports, true
		return notify.OneByOne(api), nil, client, nil
	}
	self := notify.AgentInfo{ClusterName: o.clusterName, Version: versionText(), ClusterUID: clients.ClusterUID}
	link := notify.NewLink(client, self, notify.NewLinkMetrics(metrics.Registry), ctrl.Log.WithName("link"))
	o.outbox.Supports, o.outbox.InitialSync = link.Supports, true
	return link, link, client, nil
}

// pipeline runs watching, auditing and delivery while the agent leads. When it was told to stop, delivery ends last, and
// flushes what is left. When it does not lead any more, nothing is sent any more either.
func pipeline(
	leading, untilStopped context.Context,
	ownRules *rules.Live, link *notify.Link, watcher *informers.Watcher, auditor *resync.Resyncer, notifier *notify.Notifier,
) error {
	delivery, stop := context.WithCancelCause(context.WithoutCancel(leading))
	defer stop(nil)
	defer context.AfterFunc(leading, func() {
		if untilStopped.Err() == nil {
			stop(notify.ErrLeadershipLost)
		}
	})()
	var work errgroup.Group
	delivered := make(chan error, 1)
	go func() { delivered <- notifier.Run(delivery) }()
	if link != nil {
		work.Go(func() error { return link.Run(leading) })
	}
	work.Go(func() error { return auditor.Run(leading) })
	work.Go(func() error { return watcher.Run(leading) })
	if ownRules != nil {
		work.Go(func() error { return ownRules.Run(leading, watcher.ReassessAll) })
	}
	err := work.Wait()
	stop(nil)
	return errors.Join(err, <-delivered)
}

// inventory is what the auditor compares with. A workload that is not declared once all that are declared are tracked
// is gone: the control plane is to hold nothing more of it than what is pending.
type inventory struct {
	*informers.Watcher
	reconciler *controller.Reconciler
}

func (i inventory) Inventory(ctx context.Context, instance target.Instance) (observe.DesiredState, bool, error) {
	found, complete, err := i.Watcher.DesiredState(ctx, instance)
	if err == nil && !complete && !slices.Contains(i.Instances(), instance) && i.reconciler.Ready(ctx) == nil {
		return observe.DesiredState{}, true, nil
	}
	return found, complete, err
}

// addProbes adds /healthz and /readyz. A replica is ready when every declared workload is tracked and the caches
// for it have synced, or when it waits to lead; and its state can be written.
func addProbes(
	mgr ctrl.Manager, leaderElect bool, reconciler *controller.Reconciler, watcher *informers.Watcher, state *journal.Journal,
) error {
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
	if err := mgr.AddReadyzCheck("state", func(*http.Request) error { return state.Err() }); err != nil {
		return fmt.Errorf("add /readyz: %w", err)
	}
	return nil
}

// accounts lets the controller read the outbox.
type accounts struct {
	*outbox.Outbox
	state *journal.Journal
}

func (a accounts) Durable() (bool, error) { return a.state != nil, a.state.Err() }

func (a accounts) Progress(instance target.Instance) controller.Progress {
	p := a.Outbox.Progress(instance)
	out := controller.Progress{Pending: p.Pending, Since: p.Since, LastError: p.LastError, Rejected: p.Rejected, Dropped: p.Dropped, Synced: p.Synced}
	for _, r := range p.Rejections {
		out.Rejections = append(out.Rejections, v1alpha1.Rejection{Report: r.Report, Reason: r.Reason, Time: metav1.NewTime(r.Time)})
	}
	out.Operations = make(map[target.Resource]controller.Operation, len(p.Operations))
	for resource, op := range p.Operations {
		out.Operations[resource] = controller.Operation{Name: nameOf(op), ResourceVersion: op.ResourceVersion}
	}
	return out
}

// nameOf returns the control plane's word for an operation.
func nameOf(op outbox.LastOperation) string {
	switch {
	case op.Deleted:
		return threeport.OperationDeleted
	case op.Modified:
		return threeport.OperationModified
	}
	return threeport.OperationAdded
}
