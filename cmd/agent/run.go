package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/threeport/threeport-agent/internal/agent/controller"
	"github.com/threeport/threeport-agent/internal/agent/informers"
	"github.com/threeport/threeport-agent/internal/agent/journal"
	"github.com/threeport/threeport-agent/internal/agent/notify"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/reporter"
	"github.com/threeport/threeport-agent/internal/agent/resync"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// run wires the agent and runs it until the context ends. Its stages are made in the order of the data; package
// internal/agent says what each does. live is nil without a file of --config.
func run(ctx context.Context, o *options, live *liveConfig) (err error) {
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&o.logging)))
	klog.SetLogger(ctrl.Log)
	log := ctrl.Log.WithName

	traces, traceErr := o.openTraces(ctx, metrics.Registry, log("traces"))
	defer traces.Shutdown(ctx)
	ownRules, err := o.openRules(metrics.Registry)
	if err = errors.Join(traceErr, err); err != nil {
		return err
	}
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
	lists := controller.NewResourceLists(debug.SetMemoryLimit(-1) / 4) // of GOMEMLIMIT; without it, there is no bound
	lists.RegisterMetrics(metrics.Registry)
	mgr, isLeading, err := newManager(o, config, lists)
	if err != nil {
		return err
	}
	clients, err := informers.NewClients(config)
	if err != nil {
		return err
	}
	o.api.Allowed = isLeading
	api, err := newAPIClient(o)
	if err != nil {
		return err
	}

	registerCertificateExpiry(metrics.Registry, api)

	// ThreeportWorkloads → the registry of targets. The reconciler reads the progress of their delivery from the outbox.
	targets := target.NewRegistry()
	target.RegisterMetrics(metrics.Registry, targets)
	reports := outbox.New(o.outbox, state)
	reconciler := controller.New(mgr.GetClient(), mgr.GetAPIReader(), lists, targets, reports, state)
	if err := reconciler.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("set up the controller: %w", err)
	}
	o.reporter.AllDeclared = reconciler.AllDeclared()
	// Targets → objects and Events → reports in the outbox.
	p := pipeline{leaderElect: o.leaderElect, ownRules: ownRules, redaction: o.reporter.Redaction, filters: o.reporter.Filters}
	if p.heartbeat, err = newHeartbeat(o, config, reconciler, log("heartbeat")); err != nil {
		return err
	}
	if p.renewer, err = newRenewer(o, config, api, metrics.Registry, log("credential")); err != nil {
		return err
	}
	p.reporter = reporter.New(
		o.reporter, clients, targets, reports, state, reporter.NewMetrics(metrics.Registry), log("reporter"), reconciler.Changed)
	reconciler.SetReporter(p.reporter)
	// Reports in the outbox → the control plane.
	ready := readiness{mgr.Elected(), o.leaderElect, reconciler, p.reporter}
	var sender notify.Sender
	switch {
	case api == nil:
		sender = notify.OneByOne(notify.NewStdoutSender(os.Stdout))
	case !o.reportSets:
		sender = notify.OneByOne(notify.NewV0Sender(api))
	default:
		info := notify.AgentInfo{ClusterName: o.clusterName, Version: versionText(), ClusterUID: clients.ClusterUID, Ready: ready.hasSynced}
		p.negotiation = notify.NewNegotiatingSender(api, reports, info, metrics.Registry, log("negotiation"))
		sender = p.negotiation
	}
	o.notify.Durable, _ = state.Durable()
	var syncer notify.InitialSyncer
	if api != nil {
		p.resyncer = resync.New(o.resync, p.reporter, reconciler, reports, api, resync.NewMetrics(metrics.Registry), log("resync"))
		syncer = p.resyncer
	}
	p.notifier = notify.New(o.notify, reports, sender, syncer, notify.NewMetrics(metrics.Registry, reports), log("notify"))

	if err := live.addTo(mgr, reports, p); err != nil {
		return err
	}
	err = errors.Join(
		addProbes(ctx, mgr, o.probeAddress, ready, state, live, log("probes")),
		addMetrics(ctx, mgr, &o.metrics, log("metrics")))
	if err != nil {
		return err
	}
	journal.RegisterMetrics(metrics.Registry, state)
	return p.runUnder(ctx, mgr)
}

// newAPIClient returns a client of the control plane; nil if reports are printed.
func newAPIClient(o *options) (*threeport.Client, error) {
	if o.sink == sinkStdout {
		return nil, nil
	}
	return threeport.New(o.api)
}
