package alerts

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/monitoring"
)

// The API accepts fewer requests than the agent has reports, until an administrator raises the limit.
func TestAlerts_RateLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *monitoredWorld) {
		system, err := w.Client.CoreV1().Namespaces().Get(w.Ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		w.Must(err)
		w.Must(w.authority.IssueClient(string(system.UID), "threeport:agents").Write(w.credentials, "tls"))
		w.agentFlags = []string{"--report-sets=false"} // a set has hundreds of reports in one request
		w.apiFlags = []string{"--require-assignment=false", "--rate-limit=2"}
	})
	w.expectAlerts(monitoring.Fault{
		Name:   "the rate limit is too low",
		Alerts: []string{"ThreeportAPIThrottles", "ThreeportAgentDeliveryDelayed"},
		Inject: func() { w.createEvents(600) },
		Visible: func() {
			w.ExpectCondition(w.deployed, v1alpha1.ConditionDelivered, metav1.ConditionFalse, "429")
			w.ExpectMetric(`controlplane_request_duration_seconds_count{code="429"} > 0`)
			w.ExpectMetric("instance:threeport_agent_report_delay_seconds:p99_5m > 60")
		},
		Mend: func() {
			w.apiFlags = []string{"--require-assignment=false"}
			w.api.Kill()
			w.startAPI()
		},
		Healed: func() {
			w.ExpectCondition(w.deployed, v1alpha1.ConditionDelivered, metav1.ConditionTrue, "")
			w.ExpectMetric("threeport_agent_reports_pending == 0")
		},
	})
}
