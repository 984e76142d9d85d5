// Package reload reads files of rules or settings, and reads them again when they change. Invalid files never replace valid ones.
package reload

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
)

const (
	// settleDelay is how long after a change the files are read. Editors write more than once.
	settleDelay = 100 * time.Millisecond
	// defaultPollInterval is how often the files are read without a notification. Some file systems send none.
	defaultPollInterval = 10 * time.Second
)

// Rules are parsed files: rules, or settings.
type Rules interface {
	// Len is the number of rules.
	Len() int
}

// Metrics show which rules are in use.
type Metrics interface {
	// Use is called with the number of rules that are in use now.
	Use(rules int)
	// Failing is called with true if the files are unreadable or invalid, so that the previous rules stay in use.
	Failing(bool)
}

// Live holds the current rules of a file or a directory. It is safe for concurrent use.
type Live[R Rules] struct {
	// PollInterval is how often Run reads the files without a notification. Set it before Run.
	PollInterval time.Duration

	path     string
	selected Select
	parse    func(...File) (R, error)
	metrics  Metrics
	log      logr.Logger
	rules    atomic.Pointer[R]

	// The state of Run. Only Run uses these fields once the rules are open.
	inUse, seen [sha256.Size]byte
	failure     string // the logged error of the files; empty if they are valid
}

// Open reads rules. Invalid rules are an error here; later, Run keeps the previous rules instead.
func Open[R Rules](path string, selected Select, parse func(...File) (R, error), metrics Metrics, log logr.Logger) (*Live[R], error) {
	files, err := Read(path, selected)
	if err != nil {
		return nil, fmt.Errorf("read the files: %w", err)
	}
	rules, err := parse(files...)
	if err != nil {
		return nil, err
	}
	l := &Live[R]{PollInterval: defaultPollInterval, path: path, selected: selected, parse: parse, metrics: metrics, log: log}
	l.inUse = digest(files)
	l.seen = l.inUse
	l.rules.Store(&rules)
	metrics.Use(rules.Len())
	return l, nil
}

// Current returns the rules that are in use.
func (l *Live[R]) Current() R { return *l.rules.Load() }

// Run reloads the rules when they change, until the context ends. It calls changed after each reload, never concurrently.
func (l *Live[R]) Run(ctx context.Context, changed func()) {
	var events chan fsnotify.Event
	var errs chan error
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		l.log.Info("Cannot watch the files; polling for changes instead", "path", l.path, "reason", err.Error())
	} else {
		defer watcher.Close() //nolint:errcheck // it has no data to lose
		events, errs = watcher.Events, watcher.Errors
	}
	tick := time.NewTicker(l.PollInterval)
	defer tick.Stop()
	settled := time.NewTimer(0) // the files may have changed since Open
	defer settled.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-events:
			settled.Reset(settleDelay)
			continue
		case err := <-errs: // such as lost notifications
			l.log.V(1).Info("Reloading the files", "path", l.path, "reason", err.Error())
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
func (l *Live[R]) watch(watcher *fsnotify.Watcher) {
	if watcher == nil {
		return
	}
	dir := l.path
	if info, err := os.Stat(l.path); err != nil || !info.IsDir() {
		dir = filepath.Dir(l.path)
	}
	if err := watcher.Add(dir); err != nil { // the next poll tries again
		l.log.V(1).Info("Cannot watch the files; polling for changes instead", "path", l.path, "reason", err.Error())
	}
}

// reload reads the rules, and replaces the current ones if they differ and are valid.
func (l *Live[R]) reload() bool {
	files, err := Read(l.path, l.selected)
	if err != nil {
		l.seen = [sha256.Size]byte{}
		l.fail(err)
		return false
	}
	now := digest(files)
	switch now {
	case l.inUse:
		l.metrics.Failing(false)
		if l.failure != "" {
			l.log.Info("The files are valid again and unchanged", "path", l.path)
		}
		l.failure, l.seen = "", now
		return false
	case l.seen:
		return false
	}
	l.seen = now
	if len(files) == 0 { // the directory is being replaced or deleted
		l.fail(fmt.Errorf("no files in %s", l.path))
		return false
	}
	rules, err := l.parse(files...)
	if err != nil {
		l.fail(err)
		return false
	}
	l.metrics.Use(rules.Len())
	l.metrics.Failing(false)
	l.rules.Store(&rules)
	l.inUse, l.failure = now, ""
	l.log.Info("Files loaded", "path", l.path, "rules", rules.Len())
	return true
}

// fail logs an error of the files once.
func (l *Live[R]) fail(err error) {
	l.metrics.Failing(true)
	if text := err.Error(); text != l.failure {
		l.failure = text
		l.log.Error(err, "Files rejected; their previous version stays in use", "path", l.path)
	}
}
