package rules

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/health"
)

const (
	// settleDelay is how long after a change the files are read. Editors write more than once.
	settleDelay = 100 * time.Millisecond
	// defaultPollInterval is how often the files are read without a notification. Some file systems send none.
	defaultPollInterval = 10 * time.Second
)

// Live holds the current rules of a file or a directory. It is safe for concurrent use.
type Live struct {
	path         string
	log          logr.Logger
	metrics      *Metrics
	set          atomic.Pointer[Set]
	pollInterval time.Duration

	// The state of Run. Only Run uses these fields once the rules are open.
	inUse, seen [sha256.Size]byte
	failure     string // the logged error of the files; empty if they are valid
}

// Open reads rules. Invalid rules are an error here; later, Run keeps the previous rules instead.
func Open(path string, metrics *Metrics, log logr.Logger) (*Live, error) {
	files, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("read the rules: %w", err)
	}
	set, err := Parse(files...)
	if err != nil {
		return nil, err
	}
	l := &Live{path: path, log: log, metrics: metrics, pollInterval: defaultPollInterval}
	l.inUse = digest(files)
	l.seen = l.inUse
	l.set.Store(set)
	metrics.use(set)
	return l, nil
}

// Judge assesses an object by the current rules.
func (l *Live) Judge(kind schema.GroupKind, object map[string]any, now time.Time) (health.Assessment, bool) {
	a, d := l.set.Load().Explain(kind, object, now)
	if d != nil && d.Failed {
		l.metrics.failed(a.Reason)
	}
	return a, d != nil
}

// Covers reports whether the current rules may have one for a kind.
func (l *Live) Covers(kind schema.GroupKind) bool { return l.set.Load().Covers(kind) }

// Run reloads the rules when they change, until the context ends. It calls changed after each reload, never concurrently.
func (l *Live) Run(ctx context.Context, changed func()) error {
	var events chan fsnotify.Event
	var errs chan error
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		l.log.Info("Cannot watch the health rules; polling for changes instead", "path", l.path, "reason", err.Error())
	} else {
		defer watcher.Close() //nolint:errcheck // it has no data to lose
		events, errs = watcher.Events, watcher.Errors
	}
	tick := time.NewTicker(l.pollInterval)
	defer tick.Stop()
	settled := time.NewTimer(0) // the files may have changed since Open
	defer settled.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-events:
			settled.Reset(settleDelay)
			continue
		case err := <-errs: // such as lost notifications
			l.log.V(1).Info("Reloading the health rules", "path", l.path, "reason", err.Error())
			settled.Reset(settleDelay)
			continue
		case <-settled.C:
		case <-tick.C:
		}
		l.watch(watcher)
		if l.reload() {
			changed()
		}
	}
}

// watch watches the directory of the rules. For a file it is the parent, because another file may replace it. Repeated
// calls have no effect unless the directory was replaced.
func (l *Live) watch(watcher *fsnotify.Watcher) {
	if watcher == nil {
		return
	}
	dir := l.path
	if info, err := os.Stat(l.path); err != nil || !info.IsDir() {
		dir = filepath.Dir(l.path)
	}
	if err := watcher.Add(dir); err != nil { // the next poll tries again
		l.log.V(1).Info("Cannot watch the health rules; polling for changes instead", "path", l.path, "reason", err.Error())
	}
}

// reload reads the rules, and replaces the current ones if they differ and are valid.
func (l *Live) reload() bool {
	files, err := read(l.path)
	if err != nil {
		l.seen = [sha256.Size]byte{}
		l.fail(err)
		return false
	}
	now := digest(files)
	switch now {
	case l.inUse:
		l.metrics.broken.Set(0)
		if l.failure != "" {
			l.log.Info("Health rules are valid again and unchanged", "path", l.path)
		}
		l.failure, l.seen = "", now
		return false
	case l.seen:
		return false
	}
	l.seen = now
	if len(files) == 0 { // the directory is being replaced or deleted
		l.fail(fmt.Errorf("no files of rules in %s", l.path))
		return false
	}
	set, err := Parse(files...)
	if err != nil {
		l.fail(err)
		return false
	}
	l.metrics.use(set)
	l.set.Store(set)
	l.inUse, l.failure = now, ""
	l.log.Info("Health rules loaded", "path", l.path, "rules", set.Len())
	return true
}

// fail logs an error of the files once.
func (l *Live) fail(err error) {
	l.metrics.broken.Set(1)
	if text := err.Error(); text != l.failure {
		l.failure = text
		l.log.Error(err, "Health rules rejected; the previous rules stay in use", "path", l.path)
	}
}
