package kubectl

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/threeport/threeport-agent/api/v1alpha1"
)

// Intervals of drawing. redrawPause collects a burst of changes, and redrawInterval updates the ages and notices an agent
// that stopped.
const (
	redrawPause    = 200 * time.Millisecond
	redrawInterval = 10 * time.Second
)

// follower shows workloads as they change. Its informer is the only goroutine; [statusOptions.follow] waits for it.
type follower struct {
	o        *statusOptions
	informer cache.SharedIndexInformer
	changed  chan struct{} // of capacity 1

	mu           sync.Mutex
	clusterError string // the latest request's error; empty if it succeeded

	shown        map[string][]byte // the last printed line by workload
	drawn        bool
	printedError string // the last printed clusterError
	current      []workloadStatus
}

// follow shows workloads until ctx ends, and exits with the code for their last status.
func (o *statusOptions) follow(ctx context.Context) error {
	client, err := o.cluster.dynamic()
	if err != nil {
		return err
	}
	f := &follower{o: o, changed: make(chan struct{}, 1), shown: map[string][]byte{}}
	if err := f.newInformer(client); err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() { f.informer.RunWithContext(watching) })
	err = f.run(ctx)
	stop()
	wait.Wait()
	if err != nil {
		return err
	}
	if o.name != "" && len(f.current) == 0 {
		return noSuchWorkload(o.name, nil)
	}
	return exitWith(o.code(f.current))
}

// newInformer creates the informer, which signals changes.
func (f *follower) newInformer(client dynamic.Interface) error {
	resource := client.Resource(workloads)
	selected := func(options metav1.ListOptions) metav1.ListOptions {
		options.FieldSelector = selectName(f.o.name).FieldSelector
		return options
	}
	f.informer = cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := resource.List(ctx, selected(options))
			f.setClusterError(ctx, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			w, err := resource.Watch(ctx, selected(options))
			f.setClusterError(ctx, err)
			return w, err
		},
	}, &unstructured.Unstructured{}, 0, nil)
	_, err := f.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { f.mark() },
		UpdateFunc: func(any, any) { f.mark() },
		DeleteFunc: func(any) { f.mark() },
	})
	return err
}

// setClusterError records the result of a request to the cluster.
func (f *follower) setClusterError(ctx context.Context, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.clusterError
	f.clusterError = ""
	if err != nil && ctx.Err() == nil {
		f.clusterError = workloadsFailure(err).Error()
	}
	if f.clusterError != before {
		f.mark()
	}
}

func (f *follower) mark() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

func (f *follower) run(ctx context.Context) error {
	_, isTerminal := terminal(f.o.plugin.Out)
	redraw := isTerminal && f.o.output.value != outputJSON && f.o.output.value != outputYAML
	ticker := time.NewTicker(redrawInterval)
	defer ticker.Stop()
	synced := f.informer.HasSyncedChecker().Done()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-synced: // the only signal of a cluster without workloads
			synced = nil
			f.mark()
			continue
		case <-f.changed:
			if !pause(ctx, redrawPause) {
				return nil
			}
		case <-ticker.C: // for the ages, and for an agent that stopped
		}
		if !f.informer.HasSynced() {
			continue
		}
		synced = nil
		if err := f.draw(ctx, redraw); err != nil {
			return err
		}
	}
}

// pause waits, and reports whether ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// draw shows the current status: of all workloads on a terminal, else of those that have changed.
func (f *follower) draw(ctx context.Context, redraw bool) error {
	var list []v1alpha1.ThreeportWorkload
	for _, item := range f.informer.GetStore().List() {
		u, ok := item.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		wl, err := decodeWorkload(u)
		if err != nil {
			return err
		}
		list = append(list, wl)
	}
	var err error
	if f.current, err = f.o.statuses(ctx, list); err != nil {
		return err
	}
	f.mu.Lock()
	problem := f.clusterError
	f.mu.Unlock()
	if redraw {
		return f.redraw(problem)
	}
	if problem != f.printedError && problem != "" {
		_, _ = fmt.Fprintln(f.o.plugin.ErrOut, "kubectl-threeport:", oneLine(problem))
	}
	f.printedError = problem
	return f.printChanges()
}

// redraw clears the screen and draws all workloads.
func (f *follower) redraw(problem string) error {
	var text bytes.Buffer
	text.WriteString("\x1b[H\x1b[2J") // moves the cursor to the corner and clears the screen
	if err := f.o.show(&text, f.current); err != nil {
		return err
	}
	if len(f.current) == 0 {
		text.WriteString(f.o.noWorkloads() + "\n")
	}
	if problem != "" {
		_, _ = fmt.Fprintf(&text, "\n%s\n", f.o.plugin.palette.paint(red, "Not current: "+oneLine(problem)))
	}
	_, err := f.o.plugin.Out.Write(text.Bytes())
	return err
}

// printChanges prints the workloads that have changed.
func (f *follower) printChanges() error {
	now := f.o.plugin.now()
	there := map[string]bool{}
	var changed []workloadStatus
	for _, s := range f.current {
		there[s.Name] = true
		var text bytes.Buffer
		if err := writeJSON(&text, s); err != nil {
			return err
		}
		if !bytes.Equal(f.shown[s.Name], text.Bytes()) {
			f.shown[s.Name] = text.Bytes()
			changed = append(changed, s)
		}
	}
	for name := range f.shown {
		if !there[name] {
			delete(f.shown, name)
			changed = append(changed, workloadStatus{Name: name, Namespaces: []string{}, Status: "Deleted"})
		}
	}
	if f.o.output.value == outputJSON || f.o.output.value == outputYAML {
		return f.o.encode(f.o.plugin.Out, changed)
	}
	t := statusTable(changed, now, f.o.output.value == outputWide)
	if f.drawn {
		t.rows = t.rows[1:]
	}
	if len(t.rows) == 0 {
		return nil
	}
	f.drawn = true
	return t.write(f.o.plugin.Out, f.o.plugin.palette, "", 0)
}
