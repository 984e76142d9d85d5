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

// How often what is followed is drawn: not more often than redrawPause, which a burst of changes ends in, and as ages
// go on, every redrawInterval.
const (
	redrawPause    = 200 * time.Millisecond
	redrawInterval = 10 * time.Second
)

// follower shows workloads as they change. One goroutine feeds it, which [statusOptions.follow] waits for.
type follower struct {
	o        *statusOptions
	informer cache.SharedIndexInformer
	changed  chan struct{} // of capacity 1

	mu           sync.Mutex
	clusterError string // why the cluster cannot be asked now

	shown        map[string][]byte // by workload, what was last printed of it
	drawn        bool
	printedError string // the trouble that was last told
	current      []workloadStatus
}

// follow shows workloads until ctx ends, and returns the code for how they stood then.
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
		return noSuchWorkload(o.name)
	}
	return exitWith(o.code(f.current))
}

// newInformer makes the informer, which says when something has changed.
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

// noteIncomplete keeps why the cluster could not be asked.
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
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.changed:
			if !pause(ctx, redrawPause) {
				return nil
			}
		case <-ticker.C:
			if !redraw {
				continue
			}
		}
		if !f.informer.HasSynced() {
			continue
		}
		if err := f.draw(redraw); err != nil {
			return err
		}
	}
}

// pause waits, and reports whether ctx goes on.
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

// draw shows how workloads stand now: all of them on a terminal, else those that have changed.
func (f *follower) draw(redraw bool) error {
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
	f.current = statusesOf(list)
	f.mu.Lock()
	trouble := f.clusterError
	f.mu.Unlock()
	if redraw {
		return f.redraw(trouble)
	}
	if trouble != f.printedError && trouble != "" {
		_, _ = fmt.Fprintln(f.o.plugin.ErrOut, "kubectl-threeport:", oneLine(trouble))
	}
	f.printedError = trouble
	return f.printChanges()
}

// redraw draws everything anew.
func (f *follower) redraw(trouble string) error {
	var text bytes.Buffer
	text.WriteString("\x1b[H\x1b[2J") // cursor to the corner, erase
	if err := f.o.show(&text, f.current); err != nil {
		return err
	}
	if len(f.current) == 0 {
		text.WriteString("There are no ThreeportWorkloads in the cluster.\n")
	}
	if trouble != "" {
		_, _ = fmt.Fprintf(&text, "\n%s\n", f.o.plugin.palette.paint(red, "Not current: "+oneLine(trouble)))
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
			changed = append(changed, workloadStatus{Name: name, Status: "Deleted"})
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
