package main

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/threeport/threeport-agent/internal/agent/journal"
)

// readiness is the check behind /readyz. A replica is ready while it waits to lead. A leader is ready when all declared
// workloads are tracked and the informers for them have synced.
type readiness struct {
	leading     <-chan struct{} // closed when this replica leads, or without an election when it has started
	leaderElect bool
	reconciler  interface {
		Ready(ctx context.Context) error
	}
	reporter interface{ Ready() bool }
}

func (r readiness) check(req *http.Request) error {
	select {
	case <-r.leading:
	default:
		if r.leaderElect {
			return nil
		}
		return errors.New("the agent has not started yet")
	}
	return r.synced(req.Context())
}

// synced returns an error until the declared workloads are tracked and the informers have synced.
func (r readiness) synced(ctx context.Context) error {
	if err := r.reconciler.Ready(ctx); err != nil {
		return err
	}
	if !r.reporter.Ready() {
		return errors.New("caches have not synced yet")
	}
	return nil
}

// hasSynced reports whether the declared workloads are tracked and the informers have synced.
func (r readiness) hasSynced() bool { return r.synced(context.Background()) == nil }

// addProbes adds the server of /healthz and /readyz, if there is an address for it. The latter also fails while the state cannot be
// written.
func addProbes(
	ctx context.Context, mgr ctrl.Manager, address string, ready readiness, state *journal.Journal, live *liveConfig, log logr.Logger,
) error {
	if address == noAddress || address == "" {
		return nil
	}
	mux := http.NewServeMux()
	for path, checks := range map[string]map[string]healthz.Checker{
		"/healthz": {"ping": healthz.Ping},
		"/readyz": {
			"caches": withoutReason(ready.check, log),
			"state":  withoutReason(func(*http.Request) error { return state.Err() }, log),
		},
	} {
		handler := withConfigState(http.StripPrefix(path, &healthz.Handler{Checks: checks}), live)
		mux.Handle(path, handler)
		mux.Handle(path+"/", handler)
	}
	return addServer(ctx, mgr, "probes", address, mux, nil)
}

// withConfigState adds to a detailed answer that the file of --config is invalid. The agent is ready with the version before.
func withConfigState(next http.Handler, live *liveConfig) http.Handler {
	if live == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r)
		if r.URL.Query().Has("verbose") && live.metrics.isFailing.Load() {
			_, _ = io.WriteString(w, "[!]config: the file of --config is invalid; its previous version is in use\n")
		}
	})
}

// errNotReady replaces the error of a check.
var errNotReady = errors.New("not ready; the log has the reason at level debug")

// withoutReason logs the error of a check instead of returning it: the probes need no authentication, and the error may
// name a workload or a file.
func withoutReason(check healthz.Checker, log logr.Logger) healthz.Checker {
	return func(req *http.Request) error {
		if err := check(req); err != nil {
			log.V(1).Info("not ready", "reason", err.Error())
			return errNotReady
		}
		return nil
	}
}
