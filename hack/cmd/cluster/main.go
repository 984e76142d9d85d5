// Command cluster runs a local Kubernetes control plane with fake nodes until it is interrupted. It is what
// `make cluster` runs; see package hack/cluster.
package main

import (
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

	"github.com/threeport/threeport-agent/hack/cluster"
)

// config is the command line.
type config struct {
	nodes      int
	kubeconfig string
	buildOnly  bool
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
	binaries, err := cluster.FindBinaries(ctx, out, append(cluster.All(), cluster.Kubectl)...)
	if err != nil || cfg.buildOnly {
		return err
	}
	c, err := cluster.Start(ctx, cluster.Options{Nodes: cfg.nodes, Log: out})
	if err != nil {
		return err
	}
	return errors.Join(serve(ctx, c, cfg.kubeconfig, binaries[cluster.Kubectl], out), c.Stop())
}

func parse(args []string) (config, error) {
	var cfg config
	flags := flag.NewFlagSet("cluster", flag.ContinueOnError)
	flags.IntVar(&cfg.nodes, "nodes", 3, "number of fake nodes, each for 500 pods; at least 1")
	flags.StringVar(&cfg.kubeconfig, "kubeconfig", filepath.Join(".cache", "kubeconfig"),
		"file to write the administrator's kubeconfig to, while the cluster runs")
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
	if cfg.kubeconfig == "" {
		return cfg, errors.New("--kubeconfig: want the name of a file")
	}
	return cfg, nil
}

// serve offers the cluster until ctx ends, which is no error, or a component dies, which is one.
func serve(ctx context.Context, c *cluster.Cluster, path, kubectl string, out io.Writer) (err error) {
	path, err = filepath.Abs(path)
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
	defer func() { err = errors.Join(err, os.Remove(path)) }()

	if found, lookErr := exec.LookPath("kubectl"); lookErr == nil && found == kubectl {
		kubectl = "kubectl"
	}
	_, _ = fmt.Fprintf(out, `
The cluster is up. In another terminal:

  export KUBECONFIG=%s
  %s get nodes

Logs of the components: %s
A pod with the annotation %s fails: see hack/cluster/stages/README.md.
Ctrl-C stops everything.
`, path, kubectl, filepath.Join(c.Dir(), "*.log"), cluster.BehaviourAnnotation)

	select {
	case <-ctx.Done():
		_, _ = fmt.Fprintln(out, "\nstopping")
		return nil
	case <-c.Done():
		return c.Err()
	}
}
