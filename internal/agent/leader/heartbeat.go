package leader

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/threeport/threeport-agent/api/v1alpha1"
)

// HeartbeatName is the name of the Lease of a [Heartbeat].
const HeartbeatName = "threeport-agent-heartbeat.control-plane.threeport.io"

// The times of the heartbeat. A reader may trust the statuses that the agent wrote until heartbeatDuration after the last renewal.
const (
	heartbeatDuration = 30 * time.Second
	heartbeatPeriod   = 10 * time.Second
	heartbeatTimeout  = 5 * time.Second
)

// Heartbeat is a Lease that the agent renews while it reports. The leader's Lease says only that its process runs, and needs
// an election.
type Heartbeat struct {
	leases   coordinationclient.LeaseInterface
	identity string
	version  string // of the agent
	// working returns an error if the agent does not keep its statuses up to date.
	working func() error
	log     logr.Logger

	acquired metav1.MicroTime      // when this process wrote the Lease first, or first after it had expired
	renewed  time.Time             // by this process; zero before
	held     *coordinationv1.Lease // as last written; nil if it has to be read
	failing  bool
}

// NewHeartbeat returns a heartbeat with a Lease in the namespace of the client. The Lease names the version of the agent.
func NewHeartbeat(
	leases coordinationclient.LeaseInterface, identity, version string, working func() error, log logr.Logger,
) *Heartbeat {
	return &Heartbeat{leases: leases, identity: identity, version: version, working: working, log: log}
}

// Run renews the Lease until the context ends, and then releases it. A failure is logged, and the agent continues.
func (h *Heartbeat) Run(ctx context.Context) {
	ticker := time.NewTicker(heartbeatPeriod)
	defer ticker.Stop()
	for {
		err := h.working()
		if err == nil {
			err = h.write(ctx, h.identity)
		}
		h.report(err)
		select {
		case <-ctx.Done():
			if h.held != nil {
				_ = h.write(context.WithoutCancel(ctx), "") // if it fails, the Lease expires
			}
			return
		case <-ticker.C:
		}
	}
}

// report logs the first error since the last success.
func (h *Heartbeat) report(err error) {
	if err != nil && !h.failing {
		h.log.Info("The heartbeat is not renewed, so kubectl threeport shows the statuses as outdated", "lease", HeartbeatName, "error", err.Error())
	}
	h.failing = err != nil
}

// write writes the Lease with a holder, and creates it if it does not exist. It is acquired when this process starts, or resumes after
// the Lease expired: a reader has to know that older statuses may be outdated.
func (h *Heartbeat) write(ctx context.Context, holder string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, heartbeatTimeout)
	defer cancel()
	if h.held == nil {
		if h.held, err = h.read(ctx); err != nil {
			return err
		}
	}
	lease := h.held.DeepCopy()
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, v1alpha1.AnnotationAgentVersion, h.version)
	now := metav1.MicroTime{Time: time.Now().Round(0)} // without a monotonic clock, which does not advance while a machine sleeps
	if now.Sub(h.renewed) > heartbeatDuration {
		h.acquired = now
	}
	lease.Spec.HolderIdentity, lease.Spec.AcquireTime = &holder, new(h.acquired)
	lease.Spec.RenewTime, lease.Spec.LeaseDurationSeconds = &now, new(int32(heartbeatDuration/time.Second))
	if lease.ResourceVersion == "" {
		lease, err = h.leases.Create(ctx, lease, metav1.CreateOptions{})
	} else {
		lease, err = h.leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if err != nil {
		h.held = nil // it is read again
		return fmt.Errorf("write the Lease: %w", err)
	}
	h.held, h.renewed = lease, now.Time
	return nil
}

// read returns the Lease, or a new one.
func (h *Heartbeat) read(ctx context.Context) (*coordinationv1.Lease, error) {
	lease, err := h.leases.Get(ctx, HeartbeatName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: HeartbeatName}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the Lease: %w", err)
	}
	return lease, nil
}
