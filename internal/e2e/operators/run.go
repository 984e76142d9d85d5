package operators

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/threeport/threeport-agent/internal/e2e/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/e2e/scenario"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// stopGrace is the time between SIGTERM and SIGKILL.
const stopGrace = 3 * time.Second

// crdDeadline limits the wait for the API of a CustomResourceDefinition.
const crdDeadline = time.Minute

var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// place is where a program runs.
type place struct {
	// dir is a folder for its files.
	dir, kubeconfig string
	// namespace is the only namespace that it sees; empty for all.
	namespace string
	// addresses are the addresses in manifests, and those of this run.
	addresses map[string]string
}

// listen returns a free address on the loopback interface.
func (p *place) listen() (host, port string, err error) {
	address, err := process.FreeAddress()
	host, port, _ = strings.Cut(address, ":")
	return host, port, err
}

// address returns a free address on the loopback interface.
func (p *place) address() (string, error) { return process.FreeAddress() }

// Running are operators that run.
type Running struct {
	cluster  *cluster.Cluster
	log      io.Writer
	dir      string
	binaries map[string]string // by pin

	mu        sync.Mutex
	processes []*process.Process
	sources   []*source
	addresses map[string]string
}

// Start builds operators, installs their CustomResourceDefinitions and starts them. Call Stop also after an error.
func Start(ctx context.Context, c *cluster.Cluster, log io.Writer, operators ...Operator) (*Running, error) {
	r := &Running{cluster: c, log: log, binaries: map[string]string{}, addresses: map[string]string{}}
	var err error
	if r.dir, err = os.MkdirTemp(c.Dir(), "operators-"); err != nil {
		return r, fmt.Errorf("start operators: %w", err)
	}
	root, err := cluster.SourceTree()
	if err != nil {
		return r, err
	}
	for _, o := range operators {
		if err := r.start(ctx, root, o); err != nil {
			return r, fmt.Errorf("start operator %s: %w", o.Name, err)
		}
	}
	return r, nil
}

func (r *Running) start(ctx context.Context, root string, o Operator) error {
	for _, p := range o.programs {
		path, err := cluster.Program{Source: pinFolder(root, p.pin), Module: p.module, Package: p.command}.Build(ctx, r.log)
		if err != nil {
			return err
		}
		r.binaries[p.pin] = path
	}
	if err := r.install(ctx, root, o); err != nil {
		return err
	}
	if o.source != nil {
		s, err := o.source(ctx, r.dir)
		if err != nil {
			return err
		}
		r.sources = append(r.sources, s)
		r.addresses[sourceAddress] = s.address
	}
	if o.perNamespace {
		return nil
	}
	return r.launch(o, "")
}

// launch starts the programs of an operator for one namespace, or for all.
func (r *Running) launch(o Operator, namespace string) error {
	for _, p := range o.programs {
		dir, err := os.MkdirTemp(r.dir, p.pin+"-")
		if err != nil {
			return err
		}
		at := &place{dir: dir, kubeconfig: r.cluster.Kubeconfig(), namespace: namespace, addresses: r.addresses}
		args, err := p.args(at)
		if err != nil {
			return err
		}
		env := []string{"KUBECONFIG=" + at.kubeconfig, "HOME=" + dir, "TMPDIR=" + dir, "RUNTIME_NAMESPACE=default", "POD_NAMESPACE=default"}
		log, err := os.Create(filepath.Join(dir, "log")) //nolint:gosec // in our own folder
		if err != nil {
			return err
		}
		started, err := process.Start(r.binaries[p.pin], env, args, log)
		if err != nil {
			return errors.Join(err, log.Close())
		}
		go func() {
			<-started.Done()
			_ = log.Close()
		}()
		r.mu.Lock()
		r.processes = append(r.processes, started)
		r.mu.Unlock()
	}
	return nil
}

// Prepare starts the programs of a scenario that has its own, and returns the addresses of this run. The namespace exists.
func (r *Running) Prepare(s scenario.Scenario, namespace string) (map[string]string, error) {
	o, err := find(s.Name)
	if err != nil {
		return nil, err
	}
	if o.perNamespace {
		err = r.launch(o, namespace)
	}
	return r.addresses, err
}

// Err returns an error if a program has ended.
func (r *Running) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.processes {
		select {
		case <-p.Done():
			return fmt.Errorf("an operator has ended:\n%s", tail(p.Output()))
		default:
		}
	}
	return nil
}

// tail returns the end of an output.
func tail(text string) string {
	const shown = 3000
	return text[max(0, len(text)-shown):]
}

// Stop ends all processes. Their folders are in the run directory of the cluster, which removes them.
func (r *Running) Stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	var group sync.WaitGroup
	for _, p := range r.processes {
		group.Go(func() { _ = p.Stop(stopGrace) }) // several controllers end with an error of their own
	}
	group.Wait()
	for _, s := range r.sources {
		s.stop()
	}
}

// install creates the CustomResourceDefinitions of an operator and waits for their API, and then its other objects.
func (r *Running) install(ctx context.Context, root string, o Operator) error {
	client, err := dynamic.NewForConfig(r.cluster.Config())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, crdDeadline)
	defer cancel()
	var names []string
	for _, from := range o.crds {
		objects, err := from.read(ctx, root)
		if err != nil {
			return err
		}
		for _, obj := range objects {
			_, err := client.Resource(crdResource).Create(ctx, obj, metav1.CreateOptions{})
			if err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("create %s: %w", obj.GetName(), err)
			}
			names = append(names, obj.GetName())
		}
	}
	for _, name := range names {
		if err := established(ctx, client, name); err != nil {
			return err
		}
	}
	objects, err := upstream.Parse(o.setup)
	if err != nil || len(objects) == 0 {
		return err
	}
	creator, err := upstream.New(r.cluster.Config(), upstream.API{})
	if err != nil {
		return err
	}
	for _, obj := range objects {
		if _, err := creator.Create(ctx, obj); err != nil {
			return err
		}
	}
	return nil
}

// established waits until a CustomResourceDefinition has the condition Established. The API
// server serves its objects shortly after that.
func established(ctx context.Context, client dynamic.Interface, name string) error {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		obj, err := client.Resource(crdResource).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
			if err = conditionIn(list, obj, "Established", "True", ""); err == nil {
				return nil
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", name, errors.Join(ctx.Err(), err))
		}
	}
}

// read returns the CustomResourceDefinitions.
func (c crds) read(ctx context.Context, root string) ([]*unstructured.Unstructured, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", c.module) //nolint:gosec // constants
	cmd.Dir = pinFolder(root, c.pin)
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("find module %s: %w", c.module, err)
	}
	var objects []*unstructured.Unstructured
	for _, path := range c.paths {
		files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), path))
		if err != nil {
			return nil, fmt.Errorf("find %s of module %s: %w", path, c.module, err)
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("module %s has no %s", c.module, path)
		}
		for _, file := range files {
			text, err := os.ReadFile(file) //nolint:gosec // a file of the module
			if err != nil {
				return nil, err
			}
			found, err := upstream.Parse(string(text))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			objects = append(objects, slices.DeleteFunc(found, func(obj *unstructured.Unstructured) bool {
				return obj.GetKind() != "CustomResourceDefinition"
			})...)
		}
	}
	return objects, nil
}
