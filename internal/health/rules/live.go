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
	// settle is how long after a change the files are read: an editor writes more than once.
	settleDelay = 100 * time.Millisecond
	// lookEvery is how often they are read although nothing tells of a change: not every file system does.
	defaultPollInterval = 10 * time.Second
)

// Live are the rules of a file or a directory, as they are. It is safe for concurrent use.
type Live struct {
	path         string
	log          logr.Logger
	metrics      *Metrics
	set          atomic.Pointer[Set]
	pollInterval time.Duration

	// What Run has seen; only it uses them once the rules are open.
	inUse, seen [sha256.Size]byte
	failure     string // of the files, as logged; empty if they are fine
}

// Open reads rules, which have to be right: later on, rules that are wrong are not taken.
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

// Judge judges by the rules that are right at present.
func (l *Live) Judge(kind schema.GroupKind, object map[string]any, now time.Time) (health.Assessment, bool) {
	a, d := l.set.Load().Explain(kind, object, now)
	if d != nil && d.Failed {
		l.metrics.failed(a.Reason)
	}
	return a, d != nil
}

// Covers reports whether there may be a rule for a kind at present.
func (l *Live) Covers(kind schema.GroupKind) bool { return l.set.Load().Covers(kind) }

// Run takes the rules anew when they change, until the context ends, and calls changed after each time. It is called
// again only after it has returned.
func (l *Live) Run(ctx context.Context, changed func()) error {
	var events chan fsnotify.Event
	var errs chan error
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		l.log.Info("Changes of the rules are noticed late: the file system cannot be watched", "path", l.path, "reason", err.Error())
	} else {
		defer watcher.Close() //nolint:errcheck // nothing is lost
		events, errs = watcher.Events, watcher.Errors
	}
	tick := time.NewTicker(l.pollInterval)
	defer tick.Stop()
	settled := time.NewTimer(0) // it may have changed since it was opened
	defer settled.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-events:
			settled.Reset(settleDelay)
			continue
		case err := <-errs: // such as that events were lost
			l.log.V(1).Info("The rules are looked at", "path", l.path, "reason", err.Error())
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

// watch watches what the path leads to: for a file its directory, since another one may take its place. Doing so again
// changes nothing, unless the directory is another one now.
func (l *Live) watch(watcher *fsnotify.Watcher) {
	if watcher == nil {
		return
	}
	dir := l.path
	if info, err := os.Stat(l.path); err != nil || !info.IsDir() {
		dir = filepath.Dir(l.path)
	}
	if err := watcher.Add(dir); err != nil { // it is looked for again
		l.log.V(1).Info("Changes of the rules are noticed late", "path", l.path, "reason", err.Error())
	}
}

// look reads the rules, and takes them if they are others and right.
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
			l.log.Info("The rules are again what they were", "path", l.path)
		}
		l.failure, l.seen = "", now
		return false
	case l.seen:
		return false
	}
	l.seen = now
	if len(files) == 0 { // its files are being replaced, or it is being deleted
		l.fail(fmt.Errorf("there are no files of rules in %s", l.path))
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
	l.log.Info("Rules were taken", "path", l.path, "rules", set.Len())
	return true
}

// fail tells of rules that are not taken, once.
func (l *Live) fail(err error) {
	l.metrics.broken.Set(1)
	if text := err.Error(); text != l.failure {
		l.failure = text
		l.log.Error(err, "The rules are not taken; those from before stay in use", "path", l.path)
	}
}
