package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/threeport/threeport-agent/internal/agent/notify"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/resync"
	"github.com/threeport/threeport-agent/internal/configfile"
	"github.com/threeport/threeport-agent/internal/reload"
)

// configFormat is the format of the file of --config.
var configFormat = configfile.Format{
	APIVersion: "agent.threeport.io/v1alpha1", Kind: "AgentConfig",
	FlagsOnly: []string{"config", "print-config", "version", kubeconfigFlag},
}

// kubeconfigFlag is declared by controller-runtime, for the flags of the process only.
const kubeconfigFlag = "kubeconfig"

// reloaded are the flags whose changes in the file take effect without a restart. The rules are reloaded from their own files.
var reloaded = []string{"send-concurrency", "resync-interval", "zap-log-level"}

// configuration is the command line with the file of --config.
type configuration struct {
	*options
	settings configfile.Settings // of the file
}

// Len is the number of settings in the file.
func (c *configuration) Len() int { return len(c.settings) }

// configure returns the configuration of a command line and the file. The error has the line of each wrong setting.
func configure(args []string, files []reload.File) (*configuration, error) {
	flags := flag.NewFlagSet("agent", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.String(kubeconfigFlag, "", "")
	o := newOptions(flags)
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	c := &configuration{options: o}
	if o.configFile != "" {
		if len(files) != 1 {
			return nil, fmt.Errorf("--config=%s is a folder: give a file", o.configFile)
		}
		var err error
		if c.settings, err = configFormat.Apply(files[0].Name, files[0].Data, flags); err != nil {
			return nil, err
		}
	}
	o.complete()
	if err := o.validate(flags.Args()); err != nil {
		return nil, c.placed(err)
	}
	return c, nil
}

// placed adds the place in the file to the error of a setting.
func (c *configuration) placed(err error) error {
	wrong, ok := errors.AsType[*flagError](err)
	if !ok {
		return err
	}
	for _, name := range wrong.flags {
		if setting, ok := c.settings[name]; ok {
			return fmt.Errorf("%s:%d: %w", c.configFile, setting.Line, err)
		}
	}
	return err
}

// flagError is the error of the value of some flags.
type flagError struct {
	flags []string
	err   error
}

func (e *flagError) Error() string { return e.err.Error() }
func (e *flagError) Unwrap() error { return e.err }

// configMetrics show which configuration is in use.
type configMetrics struct {
	reload.Gauges
	restart   prometheus.Gauge
	isFailing atomic.Bool
}

func newConfigMetrics(registry prometheus.Registerer) *configMetrics {
	m := &configMetrics{
		Gauges: reload.Gauges{
			InUse: prometheus.NewGauge(prometheus.GaugeOpts{
				Name: "threeport_agent_config_settings",
				Help: "Settings of the file of --config that are in use.",
			}),
			Rejected: prometheus.NewGauge(prometheus.GaugeOpts{
				Name: "threeport_agent_config_failing",
				Help: "1 while the file of --config is unreadable or invalid, so that its previous version is in use.",
			}),
		},
		restart: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "threeport_agent_config_restart_required",
			Help: "1 while the file of --config has a change that takes effect at the next start.",
		}),
	}
	registry.MustRegister(m.InUse, m.Rejected, m.restart)
	return m
}

// Failing implements [reload.Metrics].
func (m *configMetrics) Failing(failing bool) {
	m.isFailing.Store(failing)
	m.Gauges.Failing(failing)
}

// liveConfig applies the changes of the file of --config.
type liveConfig struct {
	file    *reload.Live[*configuration]
	metrics *configMetrics
	started configfile.Settings // at the start
	level   zap.AtomicLevel
	log     logr.Logger

	notifier *notify.Notifier
	outbox   *outbox.Outbox
	resyncer *resync.Resyncer // nil if reports are printed
}

// openConfig reads the file of --config, and returns the configuration. Without the file, there is no liveConfig.
func openConfig(args []string, path string, registry prometheus.Registerer) (*options, *liveConfig, error) {
	if path == "" {
		c, err := configure(args, nil)
		if err != nil {
			return nil, nil, err
		}
		return c.options, nil, nil
	}
	l := &liveConfig{metrics: newConfigMetrics(registry), log: ctrl.Log.WithName("config")}
	var err error
	l.file, err = reload.Open(path, reload.YAML, func(files ...reload.File) (*configuration, error) { return configure(args, files) }, l.metrics, l.log)
	if err != nil {
		return nil, nil, err
	}
	c := l.file.Current()
	l.started = c.settings
	l.level = zap.NewAtomicLevelAt(logLevel(c.options))
	c.logging.Level = l.level
	return c.options, l, nil
}

// logLevel returns the level of the log.
func logLevel(o *options) zapcore.Level {
	switch {
	case o.logging.Level != nil:
		return zapcore.LevelOf(o.logging.Level)
	case o.logging.Development:
		return zapcore.DebugLevel
	default:
		return zapcore.InfoLevel
	}
}

// addTo makes the manager reload the file, if there is one, and apply it to these stages.
func (l *liveConfig) addTo(mgr manager.Manager, box *outbox.Outbox, p pipeline) error {
	if l == nil {
		return nil
	}
	l.outbox, l.notifier, l.resyncer = box, p.notifier, p.resyncer
	if err := mgr.Add(l); err != nil {
		return fmt.Errorf("set up the reload of --config: %w", err)
	}
	return nil
}

// Start reloads the file until the context ends. It implements manager.Runnable.
func (l *liveConfig) Start(ctx context.Context) error {
	l.file.Run(ctx, l.apply)
	return nil
}

// NeedLeaderElection is false: replicas that wait to lead reload the file too.
func (*liveConfig) NeedLeaderElection() bool { return false }

// apply puts a new version of the file into effect.
func (l *liveConfig) apply() {
	c := l.file.Current()
	l.level.SetLevel(logLevel(c.options))
	l.outbox.SetLimits(c.outbox.MaxSyncs, c.outbox.MaxLarge)
	l.notifier.SetConcurrency(c.notify.Concurrency)
	if l.resyncer != nil {
		l.resyncer.SetInterval(c.resync.Interval)
	}
	waiting := restartRequired(l.started, c.settings)
	reload.SetBool(l.metrics.restart, len(waiting) > 0)
	if len(waiting) > 0 {
		l.log.Info("Some changes of the file take effect at the next start of the agent", "settings", strings.Join(waiting, ", "))
	}
}

// restartRequired returns the names of the settings that differ from those at the start and are not reloaded.
func restartRequired(started, now configfile.Settings) []string {
	all := map[string]bool{}
	for _, settings := range []configfile.Settings{started, now} {
		for name := range settings {
			all[name] = started[name].Value != now[name].Value && !slices.Contains(reloaded, name)
		}
	}
	maps.DeleteFunc(all, func(_ string, required bool) bool { return !required })
	return slices.Sorted(maps.Keys(all))
}
