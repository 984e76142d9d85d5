package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/e2e/world"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// podOf reads the facts of the only Pod of a workload instance.
func (w *agentWorld) podOf(instance int64) (*threeport.PodFacts, error) {
	w.Helper()
	var detail threeport.WorkloadDetail
	if err := w.read(fmt.Sprintf("/v0/workloads/WorkloadInstance/%d", instance), &detail); err != nil {
		return nil, err
	}
	for _, o := range detail.Objects {
		if o.Object.Kind == "Pod" && o.Pod != nil {
			return o.Pod, nil
		}
	}
	return nil, fmt.Errorf("none of %d objects has facts of a Pod", len(detail.Objects))
}

// A Pod that crashes has its node, its restarts and its last exit at the API. Its health may stay the same between two crashes.
func TestPodFacts_CrashingContainer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.Deploy("single", pod("single"))
	w.ExpectStatus(d, "Healthy")
	p := w.Get(d.Objects[0])
	ended := time.Now().UTC().Truncate(time.Second).Add(-time.Minute)
	for restarts := 1; restarts <= 3; restarts++ {
		at := ended.Add(time.Duration(restarts) * time.Second)
		w.patchStatus(p, fmt.Sprintf(`{"status":{"containerStatuses":[{"name":"app","image":"sha256:1","imageID":"a","ready":false,"started":false,
			"restartCount":%d,"containerID":"c%d","state":{"waiting":{"reason":"CrashLoopBackOff","message":"hunter2"}},
			"lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled","message":"hunter2","containerID":"c%d","finishedAt":%q}}}]}}`,
			restarts, restarts, restarts, at.Format(time.RFC3339)))
		if *strictV0 { // v0 has no place for trees
			w.AwaitAgreement(world.Expected(d)...)
			continue
		}
		w.Eventually(fmt.Sprintf("the facts after %d restarts", restarts), func() error {
			facts, err := w.podOf(d.InstanceID)
			if err != nil {
				return err
			}
			if len(facts.Containers) != 1 || facts.Node == "" {
				return fmt.Errorf("the facts are %+v, want a node and a container", facts)
			}
			c := facts.Containers[0]
			if c.Name != "app" || c.Image != "example/app:1" || c.State != "Waiting" || c.Reason != "CrashLoopBackOff" || c.Ready || c.Restarts != int64(restarts) {
				return fmt.Errorf("the container is %+v", c)
			}
			if exit := c.LastExit; exit == nil || exit.Code != 137 || exit.Reason != "OOMKilled" || exit.Time == nil || !exit.Time.Equal(at) {
				return fmt.Errorf("the last exit is %+v, want code 137 OOMKilled at %s", exit, at)
			}
			return nil
		})
	}
}
