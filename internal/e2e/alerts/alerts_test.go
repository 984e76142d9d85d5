package alerts

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	_ "modernc.org/sqlite" // the driver of the database

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/monitoring"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/e2e/world"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// The programs end and start again. Prometheus has all documented metrics before.
func TestAlerts_ProgramsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ExpectQuiet()
	w.expectDocumented()
	w.expectDashboards()

	w.expectAlerts(monitoring.Fault{
		Name:   "the API is down",
		Alerts: []string{"ThreeportAgentNotDelivering", "ThreeportAPIAbsent"},
		Inject: func() {
			w.api.Kill()
			w.Patch(w.object, `{"data": {"key": "changed"}}`) // the report is pending until the end of the outage
		},
		Visible: func() {
			w.ExpectCondition(w.deployed, v1alpha1.ConditionDelivered, metav1.ConditionFalse, "not delivered yet")
			w.ExpectMetric("threeport_agent_delivery_suspended == 1 and on () threeport_agent_reports_pending > 0")
		},
		Mend: w.startAPI,
		Healed: func() {
			w.ExpectCondition(w.deployed, v1alpha1.ConditionDelivered, metav1.ConditionTrue, "")
			w.ExpectMetric("threeport_agent_delivery_suspended == 0")
		},
	})
	w.expectAlerts(monitoring.Fault{
		Name:    "the cluster is silent",
		Alerts:  []string{"ThreeportAgentAbsent", "ThreeportFleetAgentOffline"},
		Inject:  func() { w.KillAgent(w.agent) },
		Visible: func() { w.expectSilent(true); w.ExpectMetric(`controlplane_clusters{state="silent"} == 1`) },
		Mend:    w.startAgent,
		Healed:  func() { w.expectSilent(false); w.ExpectMetric(`controlplane_clusters{state="silent"} == 0`) },
	})
	w.expectAlerts(monitoring.Fault{
		Name:   "the certificate of the agent ends",
		Alerts: []string{"ThreeportAgentCertificateExpires", "ThreeportAgentCertificateExpiresNow", "ThreeportAgentNotDelivering"},
		Inject: func() { w.issue("tls", time.Now().Add(10*time.Second)) },
		Visible: func() {
			w.ExpectMetric("threeport_agent_client_certificate_expiration_timestamp_seconds < time()")
			w.Patch(w.object, `{"data": {"key": "changed again"}}`)
			w.ExpectCondition(w.deployed, v1alpha1.ConditionDelivered, metav1.ConditionFalse, "certificate")
			w.ExpectMetric("threeport_agent_delivery_suspended == 1")
		},
		Mend: func() { w.issue("tls", time.Time{}) },
		Healed: func() {
			w.ExpectMetric("threeport_agent_client_certificate_expiration_timestamp_seconds - time() > 7 * 86400")
			w.ExpectCondition(w.deployed, v1alpha1.ConditionDelivered, metav1.ConditionTrue, "")
		},
	})
}

// These faults do not affect each other, so they are injected at the same time.
func TestAlerts_Contents(t *testing.T) {
	t.Parallel()
	const valid, invalid = "zap-log-level: info\n", "zap-log-level: loud\n"
	config, redaction := filepath.Join(t.TempDir(), "agent.yaml"), filepath.Join(t.TempDir(), "redaction.yaml")
	w := newWorld(t, func(w *monitoredWorld) {
		w.minute = 2 * time.Second // the alert of repairs fires after half an hour of the rules
		w.configure(config, valid)
		w.write(redaction, "rules: []\n")
		w.agentFlags = []string{"--config=" + config, "--resync-interval=5s"}
		w.apiFlags = []string{"--redaction-rules=" + redaction}
	})
	other := w.Deploy("other", world.ConfigMap("other"))
	w.ExpectStatus(other, "Healthy")
	var stopDeletions func()
	w.expectAlerts(
		monitoring.Fault{
			Name:    "the certificate of the API ends within an hour",
			Alerts:  []string{"ThreeportAPICertificateExpires", "ThreeportAPICertificateExpiresNow"},
			Inject:  func() { w.issue("api", time.Now().Add(time.Hour)) },
			Visible: func() { w.ExpectMetric("controlplane_certificate_expiration_timestamp_seconds - time() < 3600") },
			Mend:    func() { w.issue("api", time.Time{}) },
			Healed:  func() { w.ExpectMetric("controlplane_certificate_expiration_timestamp_seconds - time() > 7 * 86400") },
		},
		monitoring.Fault{
			Name:   "files are invalid",
			Alerts: []string{"ThreeportAgentRulesRejected", "ThreeportAPIRulesRejected"},
			Inject: func() { w.configure(config, invalid); w.write(redaction, "rules: invalid\n") },
			Visible: func() {
				w.expectProbe("an invalid configuration", func(page string) bool { return strings.Contains(page, "[!]config") })
				w.ExpectMetric("threeport_agent_config_failing == 1")
				w.ExpectMetric("controlplane_redaction_rules_failing == 1")
			},
			Mend: func() { w.configure(config, valid); w.write(redaction, "rules: []\n") },
			Healed: func() {
				w.expectProbe("a valid configuration", func(page string) bool { return !strings.Contains(page, "[!]config") })
				w.ExpectMetric("threeport_agent_config_failing == 0")
			},
		},
		monitoring.Fault{
			Name:   "the log backend refuses records",
			Alerts: []string{"ThreeportFleetLogsDropped"},
			Inject: func() {
				w.logs.refuses.Store(true)
				w.Deploy("logged", world.ConfigMap("logged"))
			},
			Visible: func() { w.ExpectMetric(`controlplane_otlp_log_records_dropped_total{cause="refused"} > 0`) },
			Mend:    func() { w.logs.refuses.Store(false) },
			Healed:  func() { w.ExpectMetric("controlplane_otlp_log_records_waiting == 0") },
		},
		monitoring.Fault{
			Name:   "the API rejects reports",
			Alerts: []string{"ThreeportAgentReportsRejected", "ThreeportFleetReportsRejected"},
			// The workload lists the row of another one.
			Inject: func() { w.list(other, w.deployed.Resources[0].ThreeportID) },
			Visible: func() {
				w.ExpectCondition(other, v1alpha1.ConditionDelivered, metav1.ConditionFalse, "belongs to another workload")
				w.ExpectMetric("threeport_agent_dead_letters > 0")
				w.ExpectMetric("controlplane_agent_dead_letters > 0")
			},
			Mend: func() { w.list(other, other.Resources[0].ThreeportID) },
			Healed: func() {
				w.ExpectCondition(other, v1alpha1.ConditionDelivered, metav1.ConditionTrue, "")
				w.ExpectMetric("threeport_agent_dead_letters == 0")
			},
		},
		monitoring.Fault{
			Name:   "somebody deletes rows again and again",
			Alerts: []string{"ThreeportAgentRepairs"},
			Inject: func() {
				w.createEvents(1)
				w.expectEvent("Reason0")
				stopDeletions = w.Repeat(3*time.Second, func(ctx context.Context) error { return w.exec(ctx, "DELETE FROM workload_events") })
			},
			Visible: func() { w.ExpectMetric("threeport_agent_audit_repairs_total > 0") },
			Mend:    func() { stopDeletions() },
			Healed:  func() { w.expectEvent("Reason0") },
		},
	)
}

// expectSilent waits until the list of clusters says whether the agent is silent.
func (w *monitoredWorld) expectSilent(want bool) {
	w.Helper()
	w.Eventually(fmt.Sprintf("silent=%t in the list of clusters", want), func() error {
		body, _, err := w.get("/v0/clusters")
		if err != nil {
			return err
		}
		var list struct{ Items []threeport.Cluster }
		if err := json.Unmarshal(body, &list); err != nil {
			return err
		}
		if len(list.Items) != 1 || list.Items[0].Silent != want {
			return fmt.Errorf("the list is %+v", list.Items)
		}
		return nil
	})
}

// configure writes the configuration file of the agent.
func (w *monitoredWorld) configure(path, settings string) {
	w.Helper()
	w.write(path, "apiVersion: agent.threeport.io/v1alpha1\nkind: AgentConfig\n"+settings)
}

// list changes the row of the only resource that a workload lists.
func (w *monitoredWorld) list(d upstream.Deployed, row int64) {
	w.Helper()
	d.Resources = slices.Clone(d.Resources)
	d.Resources[0].ThreeportID = row
	w.Must(w.Upstream.Declare(w.Ctx, d))
}

// exec runs a statement on the SQLite database of the API.
func (w *monitoredWorld) exec(ctx context.Context, statement string) error {
	db, err := sql.Open("sqlite", "file:"+url.PathEscape(strings.TrimPrefix(w.database, "sqlite:"))+"?_pragma=busy_timeout(10000)")
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // the statement's error is enough
	_, err = db.ExecContext(ctx, statement)
	return err
}
