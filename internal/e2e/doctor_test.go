package e2e

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/e2e/world"
	"github.com/threeport/threeport-agent/internal/testing/certs"
)

// installedAgent is a Deployment of the agent, and its roles in a namespace. kwok simulates the Pod; a process is the agent.
const installedAgent = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: threeport-agent
  labels: {app.kubernetes.io/name: threeport-agent}
spec:
  selector: {matchLabels: {app.kubernetes.io/name: threeport-agent}}
  template:
    metadata: {labels: {app.kubernetes.io/name: threeport-agent}}
    spec:
      serviceAccountName: threeport-agent
      containers:
      - name: agent
        image: threeport-agent:latest
        args: [--threeport-api-server=%[2]s, --leader-elect]
        volumeMounts: [{name: cert, mountPath: /etc/threeport/cert}]
      volumes: [{name: cert, secret: {secretName: threeport-agent-cert}}]
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: threeport-agent}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: leases}
rules: [{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create, get, update]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: leases}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: leases}
subjects: [{kind: ServiceAccount, name: threeport-agent, namespace: %[1]s}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: threeport-agent}
subjects: [{kind: ServiceAccount, name: threeport-agent, namespace: %[1]s}]
`

// installForDoctor installs the agent in the namespace of the test, and makes its kubeconfig that of the ServiceAccount.
func (w *agentWorld) installForDoctor() {
	w.Helper()
	for _, obj := range w.Objects(fmt.Sprintf(installedAgent, w.Namespace, w.server)) {
		created := w.CreateObject(obj)
		if created.GetNamespace() == "" {
			w.removeLater(created)
		}
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "threeport-agent-cert"}, Data: map[string][]byte{}}
	secret.Data["tls.crt"], secret.Data["tls.key"] = certs.ForTest(w.T).Issue("agent")
	_, err := w.Client.CoreV1().Secrets(w.Namespace).Create(w.Ctx, secret, metav1.CreateOptions{})
	w.Must(err)
	w.kubeconfig, _, err = w.Cluster.User("system:serviceaccount:"+w.Namespace+":threeport-agent",
		"system:serviceaccounts", "system:serviceaccounts:"+w.Namespace)
	w.Must(err)
}

// The findings of doctor follow what happens to an agent. Each of them says what to do.
func TestDoctor_FindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := newWorldWithoutAgent(t)
	url, err := w.controlPlane.URL(w.Ctx)
	w.Must(err)
	w.server = url // without the proxy, which answers in place of a control plane that is gone
	w.installForDoctor()
	w.expectPlugin(1, "No agent reports: there is no Lease", "doctor")

	const group = "doctor.example.com"
	w.InstallForbiddenCRD(group, "Checkup", "checkups")
	role := w.CreateObject(upstream.WatchRole("checkups", group, "checkups"))
	w.startAgent("--leader-elect", "--leader-election-namespace="+w.Namespace, "--state-dir="+t.TempDir(), "--shutdown-timeout=1s")
	d := w.Deploy("web", deployment("web", 1), world.ConfigMap("conf"), "{apiVersion: "+group+"/v1, kind: Checkup, metadata: {name: c}}")
	for _, finding := range []string{
		"agent: The Deployment " + w.Namespace + "/threeport-agent has 1 of 1 replica available",
		"has been ready for ",
		"crd: The CustomResourceDefinition has the schema of this version.",
		"version: Agent and plugin have version ",
		"renewed the Lease " + w.Namespace + "/threeport-agent-heartbeat.control-plane.threeport.io",
		"leads: it renewed the Lease " + w.Namespace + "/threeport-agent.control-plane.threeport.io",
		"1 ThreeportWorkload, all confirmed by the agent",
		"delivery: The control plane has accepted all reports.",
		"watching: The agent watches all listed resources.",
		"durability: Undelivered reports survive a restart.",
		"permissions: The ServiceAccount " + w.Namespace + "/threeport-agent has all permissions",
		"restricts the authors of ThreeportWorkloads",
		"tls.crt of the Secret " + w.Namespace + "/threeport-agent-cert (--cert-dir) is valid until ",
	} {
		w.expectPlugin(0, finding, "doctor")
	}

	w.Remove(role)
	w.expectPlugin(1, "list, watch checkups."+group+" in namespace "+w.Namespace, "doctor")
	w.expectPlugin(1, "kubectl threeport rbac --agent-namespace "+w.Namespace, "doctor", "-n", w.Namespace)
	w.removeLater(w.CreateObject(upstream.WatchRole("checkups", group, "checkups")))
	w.expectPlugin(0, "has all permissions", "doctor")

	w.controlPlane.Kill()
	w.Patch(d.Objects[1], `{"data":{"key":"changed"}}`)
	w.expectPlugin(1, "Not delivered for ", "doctor")
	w.expectPlugin(1, "Look whether the control plane runs.", "doctor")
	w.expectPlugin(1, "See docs/runbook.md#not-delivering", "doctor")

	w.Must(w.agent.Stop(world.Timeout))
	w.expectPlugin(1, "threeport-agent-heartbeat.control-plane.threeport.io was released", "doctor")
	w.expectPlugin(1, "are outdated (AgentNotReporting)", "doctor")
}
