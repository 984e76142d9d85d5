// Command cluster runs a local Kubernetes control plane with fake nodes until it is interrupted; see package
// internal/e2e/cluster.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/threeport/threeport-agent/internal/e2e/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/image"
)

// config is the parsed command line.
type config struct {
	nodes      int
	kubeconfig string
	buildOnly  bool
	node       string
	load       []string
}

// The kinds of nodes.
const (
	nodeFake = "fake" // fake ones only
	nodeReal = "real" // one that runs containers, beside the fake ones
)

// hints explain the nodes of a cluster to its user.
var hints = map[string]string{
	nodeFake: "A pod with the annotation " + cluster.BehaviourAnnotation + " fails: see internal/e2e/cluster/stages/README.md.",
	nodeReal: "Pods run on " + cluster.RealNodeName + ", which has the image " + image.Behave + ", a program that fails as its flags say\n" +
		"(go run ./internal/e2e/behave --help), and those that --load named. Give them imagePullPolicy: Never.\n" +
		"There is no DNS and no kube-proxy there: of Services only the API server's answers.\n" +
		"The fake nodes take pods that tolerate the taint kwok.x-k8s.io/node=fake:NoSchedule.",
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1) //nolint:gocritic // stop only restores signal handling, which ends here anyway
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	cfg, err := parse(args)
	if err != nil {
		return err
	}
	if cfg.node == nodeReal {
		if err := cluster.CanRunRealNode(); err != nil {
			return err
		}
	}
	want := append(cluster.All(), cluster.Kubectl)
	if cfg.node == nodeReal {
		want = append(want, cluster.Kubelet)
	}
	binaries, err := cluster.FindBinaries(ctx, out, want...)
	if err != nil || cfg.buildOnly {
		return err
	}
	c, err := cluster.Start(ctx, cluster.Options{Nodes: cfg.nodes, RealNode: cfg.node == nodeReal, Log: out})
	if err != nil {
		return err
	}
	err = loadImages(ctx, c, cfg, out)
	if err == nil {
		err = serve(ctx, c, cfg, binaries[cluster.Kubectl], out)
	}
	return errors.Join(err, c.Stop())
}

func parse(args []string) (config, error) {
	var cfg config
	flags := flag.NewFlagSet("cluster", flag.ContinueOnError)
	flags.IntVar(&cfg.nodes, "nodes", 3, "number of fake nodes, each for 500 pods; at least 1")
	flags.StringVar(&cfg.kubeconfig, "kubeconfig", filepath.Join(".cache", "kubeconfig"),
		"file to write the administrator's kubeconfig to, while the cluster runs")
	flags.StringVar(&cfg.node, "node", nodeFake, "fake, or real to have a node that runs containers beside the fake ones (Linux, root)")
	flags.Func("load", "archive of an image (docker save, make image) to load into the real node; may be given several times",
		func(archive string) error { cfg.load = append(cfg.load, archive); return nil })
	flags.BoolVar(&cfg.buildOnly, "build-only", false, "build the binaries of the control plane, and end")
	if err := flags.Parse(args); err != nil {
		return cfg, err
	}
	if flags.NArg() > 0 {
		return cfg, fmt.Errorf("unexpected argument %q: there are only flags", flags.Arg(0))
	}
	if cfg.nodes < 1 {
		return cfg, fmt.Errorf("--nodes: %d, want at least 1", cfg.nodes)
	}
	if cfg.node != nodeFake && cfg.node != nodeReal {
		return cfg, fmt.Errorf("--node: %q, want %s or %s", cfg.node, nodeFake, nodeReal)
	}
	if len(cfg.load) > 0 && cfg.node != nodeReal {
		return cfg, errors.New("--load: only a real node runs images, give --node real")
	}
	for _, archive := range cfg.load {
		if _, err := os.Stat(archive); err != nil {
			return cfg, fmt.Errorf("--load: %w", err)
		}
	}
	if cfg.kubeconfig == "" {
		return cfg, errors.New("--kubeconfig: want the name of a file")
	}
	return cfg, nil
}

// removeUnlessReplaced removes a file, unless another cluster has replaced it.
func removeUnlessReplaced(path string, content []byte) error {
	now, err := os.ReadFile(path) //nolint:gosec // the user names the file
	if errors.Is(err, os.ErrNotExist) || err == nil && !bytes.Equal(now, content) {
		return nil
	}
	return errors.Join(err, os.Remove(path))
}

// loadImages loads images into the real node: that of the test workloads, and those of the user.
func loadImages(ctx context.Context, c *cluster.Cluster, cfg config, out io.Writer) error {
	if cfg.node != nodeReal {
		return nil
	}
	if err := c.LoadBehave(ctx); err != nil {
		return err
	}
	for _, archive := range cfg.load {
		if err := c.LoadImage(ctx, archive); err != nil {
			return err
		}
		_, _ = fmt.Fprintln(out, "loaded", archive)
	}
	return nil
}

// serve runs the cluster until ctx ends, or returns an error when a component dies.
func serve(ctx context.Context, c *cluster.Cluster, cfg config, kubectl string, out io.Writer) (err error) {
	path, err := filepath.Abs(cfg.kubeconfig)
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	raw, err := os.ReadFile(c.Kubeconfig())
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return fmt.Errorf("create folder of kubeconfig: %w", err)
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil { //nolint:gosec // the user names the file
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	defer func() { err = errors.Join(err, removeUnlessReplaced(path, raw)) }()

	if found, lookErr := exec.LookPath("kubectl"); lookErr == nil && found == kubectl {
		kubectl = "kubectl"
	}
	_, _ = fmt.Fprintf(out, `
The cluster is up. In another terminal:

  export KUBECONFIG=%s
  %s get nodes

Logs of the components: %s
%s
Ctrl-C stops everything.
`, path, kubectl, filepath.Join(c.Dir(), "*.log"), hints[cfg.node])

	select {
	case <-ctx.Done():
		_, _ = fmt.Fprintln(out, "\nstopping")
		return nil
	case <-c.Done():
		return c.Err()
	}
}
