package alerts

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/monitoring"
)

// The token of the agent ends soon, and the agent may not write the renewed one to its Secret. A person replaces the token.
func TestAlerts_Token(t *testing.T) {
	t.Parallel()
	var system string // the UID of the cluster
	file := filepath.Join(t.TempDir(), "token")
	w := newWorld(t, func(w *monitoredWorld) {
		w.minute = time.Second // the alert fires after an hour of the rules
		namespace, err := w.Client.CoreV1().Namespaces().Get(w.Ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		w.Must(err)
		system = string(namespace.UID)
		w.prepare = func() {
			token := w.createToken(system, time.Minute)
			w.write(file, token)
			w.Create("{apiVersion: v1, kind: Secret, metadata: {name: threeport-agent-cert}, stringData: {token: " + token + "}}")
		}
		w.agentFlags = []string{
			"--threeport-api-server=https://" + w.apiAddress, "--auth-enabled=false",
			"--token-file=" + file, "--token-secret=" + w.Namespace + "/threeport-agent-cert",
		}
		w.apiFlags = []string{"--require-assignment=false"}
	})
	w.expectAlerts(monitoring.Fault{
		Name:   "the token is not renewed",
		Alerts: []string{"ThreeportAgentTokenNotRenewed"},
		Inject: func() {},
		Visible: func() {
			w.ExpectMetric("threeport_agent_token_renewal_failures_total > 0")
			w.ExpectMetric("threeport_agent_token_expiration_timestamp_seconds - time() < 60")
			w.ExpectCondition(w.deployed, v1alpha1.ConditionDelivered, metav1.ConditionTrue, "")
		},
		Mend: func() {
			token := w.createToken(system, 90*24*time.Hour)
			w.write(file, token)
			secret := w.Object("{apiVersion: v1, kind: Secret, metadata: {name: threeport-agent-cert}}")
			w.Patch(secret, `{"stringData": {"token": "`+token+`"}}`)
		},
		Healed: func() {
			w.ExpectMetric("threeport_agent_token_expiration_timestamp_seconds - time() > 7 * 86400")
			w.Patch(w.object, `{"data": {"key": "changed"}}`)
			w.ExpectCondition(w.deployed, v1alpha1.ConditionDelivered, metav1.ConditionTrue, "")
		},
	})
}

// createToken creates a renewable token for the agent of a cluster with the command of the control plane.
func (w *monitoredWorld) createToken(cluster string, life time.Duration) string {
	w.Helper()
	create := exec.CommandContext(w.Ctx, shared.controlAPI, "token", "create", "--role=agent", "--name=agent-"+life.String(), "--cluster="+cluster,
		"--expires="+life.String(), "--renewable", "--database="+w.database)
	token, err := create.Output()
	w.Must(err)
	return strings.TrimSpace(string(token))
}
