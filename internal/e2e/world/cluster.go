package world

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// AgentUser is the user that the agent's ClusterRoles are bound to.
const AgentUser = "agent"

// Cluster is a cluster with the CRD and the ClusterRoles of the agent.
type Cluster struct {
	*cluster.Cluster
	AgentKubeconfig string // path; of the user that the agent's ClusterRoles are bound to
}

// StartCluster starts a cluster, and installs the CRD and the ClusterRoles from config/ below the module's root.
func StartCluster(ctx context.Context, root string, options cluster.Options) (*Cluster, error) {
	c, err := cluster.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	out := &Cluster{Cluster: c}
	up, err := upstream.New(c.Config(), upstream.API{})
	if err == nil {
		err = up.Install(ctx, root, AgentUser)
	}
	if err == nil {
		out.AgentKubeconfig, _, err = c.User(AgentUser)
	}
	if err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return out, nil
}

// removeWorkloads deletes all ThreeportWorkloads of the cluster without the agent's consent.
func (c *Cluster) removeWorkloads() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dyn, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		return err
	}
	workloads := dyn.Resource(v1alpha1.GroupVersion.WithResource("threeportworkloads"))
	list, err := workloads.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("remove all workloads: %w", err)
	}
	for _, item := range list.Items {
		// An agent may have removed the finalizer, or the workload, at this moment.
		_, _ = workloads.Patch(ctx, item.GetName(), "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if err := workloads.Delete(ctx, item.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("remove all workloads: %w", err)
		}
	}
	return nil
}

// Pool lends clusters to tests. ThreeportWorkloads are cluster-scoped, so two tests cannot use a cluster at the same time. The
// pool starts a cluster when it has no idle one, so it has as many clusters as tests run in parallel.
type Pool struct {
	Root    string          // path of the module's root
	Options cluster.Options // of each cluster

	mu   sync.Mutex
	idle []*Cluster
}

// Take lends a cluster to a test until its end. The cluster has no workloads then, but objects and Events of earlier tests.
func (p *Pool) Take(t *testing.T) *Cluster {
	t.Helper()
	c, err := p.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.giveBack(c); err != nil {
			t.Error(err)
		}
	})
	return c
}

// giveBack makes a cluster idle. If one of its components has died, it stops the cluster and returns the cause.
func (p *Pool) giveBack(c *Cluster) error {
	if err := c.Err(); err != nil {
		return errors.Join(err, c.Stop())
	}
	err := c.removeWorkloads()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, c)
	return err
}

func (p *Pool) take(ctx context.Context) (*Cluster, error) {
	p.mu.Lock() // also while a cluster starts: clusters that start at the same time are slower in total
	defer p.mu.Unlock()
	for len(p.idle) > 0 {
		c := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if c.Err() == nil {
			return c, nil
		}
		if err := c.Stop(); err != nil { // a component died after the last test
			return nil, err
		}
	}
	return StartCluster(ctx, p.Root, p.Options)
}

// Stop stops all idle clusters.
func (p *Pool) Stop() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, c := range p.idle {
		errs = append(errs, c.Stop())
	}
	p.idle = nil
	return errors.Join(errs...)
}
