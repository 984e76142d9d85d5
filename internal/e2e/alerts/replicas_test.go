package alerts

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/monitoring"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// The leader is killed. The other replica takes over, and no alert fires. The killed one starts again, and then ends twice more.
func TestAlerts_LeaderKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *monitoredWorld) {
		w.minute, w.replicas = 2*time.Second, 2 // the alert is resolved after an hour of the rules
		w.agentFlags = []string{"--kubeconfig=" + w.Cluster.Kubeconfig(), "--leader-elect", "--leader-election-namespace=" + w.Namespace}
	})
	killed, other := w.scraped[0], w.scraped[1]
	w.expectAlerts(monitoring.Fault{
		Name:   "the leader ends again and again",
		Alerts: []string{"ThreeportAgentRestarts"},
		Inject: func() {
			w.KillAgent(w.agent)
			begin := time.Now()
			w.Patch(w.object, `{"data": {"key": "changed"}}`)
			w.ExpectMetric(fmt.Sprintf(`leader_election_master_status{instance=%q} == 1`, other))
			w.ExpectOperation(w.deployed, 0, threeport.OperationModified)
			w.Logf("the other replica reports %s after the end of the leader", time.Since(begin).Round(time.Second))
			if firing, err := w.Firing(); err != nil || len(firing) > 0 {
				w.Errorf("during the takeover fire %v (%v), want no alert", firing, err)
			}
			for n := range 3 {
				w.agent = w.startReplica(0)
				w.ExpectMetric(fmt.Sprintf(`changes(process_start_time_seconds{instance=%q}[5m]) == %d`, killed, n+1))
				if n < 2 {
					w.KillAgent(w.agent)
				}
			}
		},
		Visible: func() {
			w.ExpectCondition(w.deployed, v1alpha1.ConditionDelivered, metav1.ConditionTrue, "")
			w.ExpectMetric(fmt.Sprintf(`leader_election_master_status{instance=%q} == 0`, killed))
		},
		Mend:   func() {},
		Healed: func() { w.expectRuns(w.standby) },
	})
}
