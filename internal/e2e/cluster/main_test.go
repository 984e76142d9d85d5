package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// helperEnv makes the test binary a process that starts a cluster, prints a helperReport and then waits to be killed.
const helperEnv = "THREEPORT_CLUSTER_TEST_HELPER"

// helperReport is what the helper process prints when its cluster is up.
type helperReport struct {
	Dir   string
	PIDs  map[Component]int
	Ports []int
}

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) != "" {
		if err := helper(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func helper() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*waitLimit)
	defer cancel()
	c, err := Start(ctx, Options{})
	if err != nil {
		return err
	}
	report := helperReport{Dir: c.Dir(), PIDs: map[Component]int{}, Ports: []int{c.ports.etcd, c.ports.etcdPeer, c.ports.api}}
	for _, component := range c.Components() {
		report.PIDs[component] = c.PID(component)
	}
	if err := json.NewEncoder(os.Stdout).Encode(report); err != nil {
		return err
	}
	<-ctx.Done() // the test kills this process long before
	return c.Stop()
}

// startCluster starts a cluster that ends with the test.
func startCluster(t *testing.T, options Options) *Cluster {
	t.Helper()
	options.Log = t.Output()
	c, err := Start(t.Context(), options)
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return c
}

// waitLimit is more than anything here takes on a slow and busy machine: when it is over, something hangs.
const waitLimit = 5 * time.Minute

// eventually repeats check until it returns nil, or fails the test with its last error after limit.
func eventually(t *testing.T, limit time.Duration, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("after %s: %v", limit, err)
		case <-ticker.C:
		}
	}
}
