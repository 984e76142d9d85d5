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

	mu      sync.Mutex
	trouble string // why the cluster cannot be asked now

	shown   map[string][]byte // by workload, what was last printed of it
	drawn   bool
	troubly string // the trouble that was last told
	last    []standing
}

// follow shows workloads until ctx ends, and returns the code for how they stood then.
func (o *statusOptions) follow(ctx context.Context) error {
	client, err := o.cluster.dynamic()
	if err != nil {
		return err
	}
	f := &follower{o: o, changed: make(chan struct{}, 1), shown: map[string][]byte{}}
	if err := f.listen(client); err != nil {
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
	if o.name != "" && len(f.last) == 0 {
		return noSuchWorkload(o.name)
	}
	return said(o.code(f.last))
}

// listen makes the informer, which says when something has changed.
func (f *follower) listen(client dynamic.Interface) error {
	resource := client.Resource(workloads)
	selected := func(options metav1.ListOptions) metav1.ListOptions {
		options.FieldSelector = selectName(f.o.name).FieldSelector
		return options
	}
	f.informer = cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := resource.List(ctx, selected(options))
			f.note(ctx, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			w, err := resource.Watch(ctx, selected(options))
			f.note(ctx, err)
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

// note keeps why the cluster could not be asked.
func (f *follower) note(ctx context.Context, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.trouble
	f.trouble = ""
	if err != nil && ctx.Err() == nil {
		f.trouble = workloadsFailure(err).Error()
	}
	if f.trouble != before {
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
	f.last = standings(list)
	f.mu.Lock()
	trouble := f.trouble
	f.mu.Unlock()
	if redraw {
		return f.screen(trouble)
	}
	if trouble != f.troubly && trouble != "" {
		_, _ = fmt.Fprintln(f.o.plugin.ErrOut, "kubectl-threeport:", oneLine(trouble))
	}
	f.troubly = trouble
	return f.lines()
}

// screen draws everything anew.
func (f *follower) screen(trouble string) error {
	var text bytes.Buffer
	text.WriteString("\x1b[H\x1b[2J") // cursor to the corner, erase
	if err := f.o.show(&text, f.last); err != nil {
		return err
	}
	if len(f.last) == 0 {
		text.WriteString("There are no ThreeportWorkloads in the cluster.\n")
	}
	if trouble != "" {
		_, _ = fmt.Fprintf(&text, "\n%s\n", f.o.plugin.palette.paint(red, "Not current: "+oneLine(trouble)))
	}
	_, err := f.o.plugin.Out.Write(text.Bytes())
	return err
}

// lines prints the workloads that have changed.
func (f *follower) lines() error {
	now := f.o.plugin.now()
	there := map[string]bool{}
	var changed []standing
	for _, s := range f.last {
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
			changed = append(changed, standing{Name: name, Status: "Deleted"})
		}
	}
	if f.o.output.value == outputJSON || f.o.output.value == outputYAML {
		return f.o.encode(f.o.plugin.Out, changed)
	}
	t := board(changed, now, f.o.output.value == outputWide)
	if f.drawn {
		t.rows = t.rows[1:]
	}
	if len(t.rows) == 0 {
		return nil
	}
	f.drawn = true
	return t.write(f.o.plugin.Out, f.o.plugin.palette, "", 0)
}
