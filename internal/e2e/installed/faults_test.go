package installed

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/monitoring"
	"github.com/threeport/threeport-agent/internal/e2e/operator"
)

// Each fault is visible in a status, a metric and an alert with a section of the runbook. The programs heal without a restart.
func TestInstalled_FaultsAlertAndHeal(t *testing.T) {
	for name, by := range installers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := install(t, by)
			i.certificatesExpire()
			i.configInvalid()
			i.permissionMissing()
			i.apiDown()
			i.databaseFull()
			i.leaderEnds()
			i.tokenNotRenewed()
		})
	}
}

// expectAlerts expects the alerts of faults; see [monitoring.Monitoring.ExpectAlerts]. The containers of all Pods stay the same, except of
// Pods that the faults end.
func (i *installation) expectAlerts(ends func(corev1.Pod) bool, faults ...monitoring.Fault) {
	i.Helper()
	i.ExpectQuiet()
	before := i.containers()
	begin := time.Now()
	i.ExpectAlerts(faults...)
	i.Logf("%s: %s from the fault to the end of its alerts", faults[0].Name, time.Since(begin).Round(time.Second))
	after := i.containers()
	for _, containers := range []map[string]corev1.Pod{before, after} {
		maps.DeleteFunc(containers, func(_ string, pod corev1.Pod) bool { return ends(pod) })
	}
	for id, pod := range before {
		if _, same := after[id]; !same {
			i.Errorf("%s: a container of Pod %s ended", faults[0].Name, pod.Name)
		}
	}
	if len(after) != len(before) || len(before) == 0 {
		i.Errorf("%s: there were %d containers, and are %d", faults[0].Name, len(before), len(after))
	}
}

func none(corev1.Pod) bool { return false }

// containers returns the Pods of the programs by the IDs and numbers of restarts of their containers.
func (i *installation) containers() map[string]corev1.Pod {
	i.Helper()
	found := map[string]corev1.Pod{}
	for _, namespace := range []string{apiNamespace, operator.Namespace} {
		pods, err := i.pods(i.Ctx, namespace)
		i.Must(err)
		for _, pod := range pods {
			for _, container := range pod.Status.ContainerStatuses {
				found[fmt.Sprint(container.ContainerID, " ", container.RestartCount)] = pod
			}
		}
	}
	return found
}

// certificatesExpire replaces the certificates of both programs by such that end soon.
func (i *installation) certificatesExpire() {
	i.Helper()
	i.expectAlerts(none, monitoring.Fault{
		Name:   "the certificate of the API ends within an hour",
		Alerts: []string{"ThreeportAPICertificateExpires", "ThreeportAPICertificateExpiresNow"},
		Inject: func() { i.setAPICertificate(time.Now().Add(time.Hour)) },
		Visible: func() {
			i.expectServed("less than an hour", func(left time.Duration) bool { return left < time.Hour })
			i.ExpectMetric("controlplane_certificate_expiration_timestamp_seconds - time() < 3600")
		},
		Mend: func() { i.setAPICertificate(time.Time{}) },
		Healed: func() {
			i.expectServed("more than a week", func(left time.Duration) bool { return left > 7*24*time.Hour })
			i.ExpectMetric("controlplane_certificate_expiration_timestamp_seconds - time() > 7 * 86400")
		},
	}, monitoring.Fault{
		Name:   "the certificate of the agent ends",
		Alerts: []string{"ThreeportAgentCertificateExpires", "ThreeportAgentCertificateExpiresNow", "ThreeportAgentNotDelivering"},
		Inject: func() { i.setAgentCertificate(time.Now().Add(10 * time.Second)) },
		Visible: func() {
			i.ExpectMetric("threeport_agent_client_certificate_expiration_timestamp_seconds < time()")
			i.Patch(i.object, `{"data": {"key": "changed during the outage of the certificate"}}`)
			i.ExpectCondition(i.web, v1alpha1.ConditionDelivered, metav1.ConditionFalse, "certificate")
			i.ExpectMetric("threeport_agent_delivery_suspended == 1")
		},
		Mend: func() { i.setAgentCertificate(time.Time{}) },
		Healed: func() {
			i.ExpectMetric("count(threeport_agent_client_certificate_expiration_timestamp_seconds - time() > 7 * 86400) == 2")
			i.expectDelivery()
		},
	})
}

// expectServed waits until the API serves a certificate with a wanted validity.
func (i *installation) expectServed(want string, matches func(left time.Duration) bool) {
	i.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(i.authority.CertPEM())
	i.Eventually("a certificate of the API that is valid for "+want, func() error {
		conn, err := i.dialAPI(i.Ctx)
		if err != nil {
			return err
		}
		defer conn.Close() //nolint:errcheck // only read
		client := tls.Client(conn, &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots, ServerName: operator.APIHost})
		if err := client.HandshakeContext(i.Ctx); err != nil {
			return err
		}
		if left := time.Until(client.ConnectionState().PeerCertificates[0].NotAfter); !matches(left) {
			return fmt.Errorf("it is valid for %s", left)
		}
		return nil
	})
}

// expectDelivery waits until the agent delivers reports again and none is pending.
func (i *installation) expectDelivery() {
	i.Helper()
	i.ExpectCondition(i.web, v1alpha1.ConditionDelivered, metav1.ConditionTrue, "")
	i.ExpectMetric("sum(threeport_agent_delivery_suspended) == 0 and sum(threeport_agent_reports_pending) == 0")
}

// configInvalid sets an unknown value in the configuration file of the agent.
func (i *installation) configInvalid() {
	i.Helper()
	configs := i.Client.CoreV1().ConfigMaps(operator.Namespace)
	config, err := configs.Get(i.Ctx, "threeport-agent-config", metav1.GetOptions{})
	i.Must(err)
	valid := config.Data["agent.yaml"]
	set := func(text string) {
		patch, err := json.Marshal(map[string]any{"data": map[string]string{"agent.yaml": text}})
		i.Must(err)
		_, err = configs.Patch(i.Ctx, config.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		i.Must(err)
		i.syncPods(operator.Namespace)
	}
	i.expectAlerts(none, monitoring.Fault{
		Name:   "the configuration is invalid",
		Alerts: []string{"ThreeportAgentRulesRejected"},
		Inject: func() { set(valid + "zap-log-level: loud\n") },
		Visible: func() {
			i.expectProbes("an invalid configuration", func(page string) bool { return strings.Contains(page, "[!]config") })
			i.ExpectMetric("sum(threeport_agent_config_failing) == 2")
		},
		Mend: func() { set(valid) },
		Healed: func() {
			i.expectProbes("a valid configuration", func(page string) bool { return !strings.Contains(page, "[!]config") })
			i.ExpectMetric("sum(threeport_agent_config_failing) == 0")
		},
	})
}

// expectProbes waits until the readiness probes of all agents have a wanted page.
func (i *installation) expectProbes(want string, matches func(page string) bool) {
	i.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
		return i.cluster.DialNode(ctx, address)
	}}}
	i.Eventually("the readiness probes to say: "+want, func() error {
		pods, err := i.pods(i.Ctx, operator.Namespace)
		if err != nil {
			return err
		}
		for _, pod := range pods {
			page, err := get(i.Ctx, client, "http://"+net.JoinHostPort(pod.Status.PodIP, "8081")+"/readyz?verbose")
			if err == nil && !matches(page) {
				err = fmt.Errorf("%s says %s", pod.Name, page)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func get(ctx context.Context, client *http.Client, url string) (page string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	answer, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	body, err := io.ReadAll(answer.Body)
	return string(body), err
}

// agentUser is the user of the agent's ServiceAccount.
const agentUser = "system:serviceaccount:" + operator.Namespace + ":" + operator.Name

// permissionMissing removes a kind from the ClusterRole of the agent.
func (i *installation) permissionMissing() {
	i.Helper()
	i.expectAlerts(none, monitoring.Fault{
		Name:   "the permission for a kind is missing",
		Alerts: []string{"ThreeportAgentKindNotWatched"},
		Inject: func() {
			i.Permit(agentUser, "serviceaccounts", false)
			i.cluster.CutConnections() // an open watch continues: the API server checks permissions at its start only
		},
		Visible: func() {
			i.ExpectState(i.account, 0, v1alpha1.ResourceForbidden, "")
			i.ExpectCondition(i.account, v1alpha1.ConditionWatching, metav1.ConditionFalse, "is Forbidden")
			i.ExpectStatus(i.account, "Unknown")
			i.ExpectMetric(`threeport_agent_unwatched_kinds{state="Forbidden"} == 1`)
		},
		Mend: func() { i.Permit(agentUser, "serviceaccounts", true) },
		Healed: func() {
			i.ExpectState(i.account, 0, v1alpha1.ResourcePresent, "")
			i.ExpectCondition(i.account, v1alpha1.ConditionWatching, metav1.ConditionTrue, "")
			i.ExpectStatus(i.account, "Healthy")
			i.ExpectMetric(`sum(threeport_agent_unwatched_kinds) == 0`)
		},
	})
}

// outage is how long the API is down at least.
var outage = flag.Duration("outage", 5*minute, "how long the API is down at least; five minutes of the rules by default")

// apiDown ends the Pod of the API.
func (i *installation) apiDown() {
	i.Helper()
	scale := func(replicas string) {
		i.kubectl("scale", "-n", apiNamespace, "deployment/"+apiName, "--replicas="+replicas)
		i.awaitRollout(apiNamespace, apiName)
	}
	var begin time.Time
	i.expectAlerts(ofAPI, monitoring.Fault{
		Name:   "the API is down",
		Alerts: []string{"ThreeportAgentNotDelivering", "ThreeportAPIAbsent"},
		Inject: func() {
			begin = time.Now()
			scale("0")
			i.Patch(i.object, `{"data": {"key": "changed during the outage of the API"}}`) // the report is pending until its end
		},
		Visible: func() {
			i.ExpectCondition(i.web, v1alpha1.ConditionDelivered, metav1.ConditionFalse, "not delivered yet")
			i.ExpectMetric("threeport_agent_delivery_suspended == 1 and threeport_agent_reports_pending > 0")
			i.Pause(max(0, *outage-time.Since(begin)))
		},
		Mend:   func() { scale("1") },
		Healed: i.expectDelivery,
	})
}

func ofAPI(pod corev1.Pod) bool { return pod.Namespace == apiNamespace }

// databaseFull fills the disk of the API.
func (i *installation) databaseFull() {
	i.Helper()
	disk, err := i.cluster.NodeFile(apiVolume)
	i.Must(err)
	filler := filepath.Join(disk, "filler")
	var stopWrites func()
	i.expectAlerts(none, monitoring.Fault{
		Name:   "the database is full",
		Alerts: []string{"ThreeportAPIDatabaseFull", "ThreeportAPIErrors", "ThreeportAgentNotDelivering"},
		Inject: func() {
			i.Fill(filler)
			// The agent soon tries once a minute, which is rare in the test's minutes. Other clients write too.
			stopWrites = i.RepeatRefusedWrites(500 * time.Millisecond)
			i.Patch(i.object, `{"data": {"key": "changed while the database is full"}}`)
		},
		Visible: func() {
			i.ExpectCondition(i.web, v1alpha1.ConditionDelivered, metav1.ConditionFalse, "503")
			i.ExpectMetric("threeport_agent_delivery_suspended == 1")
			i.ExpectMetric(`controlplane_request_duration_seconds_count{method="POST",code="503"} > 0`)
		},
		Mend: func() {
			stopWrites()
			i.Must(os.Remove(filler))
		},
		Healed: i.expectDelivery,
	})
}

// leaderEnds kills the agent that leads, and then the same one each time that its container runs again. The other one takes over.
func (i *installation) leaderEnds() {
	i.Helper()
	var killed corev1.Pod
	starts := func(n int) {
		i.ExpectMetric(fmt.Sprintf(`changes(process_start_time_seconds{pod=%q}[1m]) >= %d`, killed.Name, n))
	}
	i.expectAlerts(func(pod corev1.Pod) bool { return pod.Name == killed.Name }, monitoring.Fault{
		Name:   "the leader ends again and again",
		Alerts: []string{"ThreeportAgentRestarts"},
		Inject: func() {
			killed = i.leader()
			i.kill(killed)
			begin := time.Now()
			i.Patch(i.object, `{"data": {"key": "changed without a leader"}}`)
			// The rules count the restarts of an hour, which is a minute here. The kubelet delays the second one by 10 s, the third by 20 s.
			starts(1)
			i.kill(killed)
			i.expectReported("changed without a leader")
			i.Logf("%s leads and reports %s after the end of %s", i.leader().Name, time.Since(begin).Round(time.Second), killed.Name)
			starts(2)
			i.kill(killed)
			starts(3)
		},
		Visible: func() {
			i.Eventually("restarts in the status of the Pod", func() error {
				pod, err := i.Client.CoreV1().Pods(operator.Namespace).Get(i.Ctx, killed.Name, metav1.GetOptions{})
				if err == nil && pod.Status.ContainerStatuses[0].RestartCount != 3 {
					err = fmt.Errorf("there are %d", pod.Status.ContainerStatuses[0].RestartCount)
				}
				return err
			})
		},
		Mend: func() {},
		Healed: func() {
			i.ExpectMetric("sum(leader_election_master_status) == 1")
			i.expectDelivery()
		},
	})
}

// leader returns the Pod of the agent that has the lease.
func (i *installation) leader() (leader corev1.Pod) {
	i.Helper()
	i.Eventually("an agent that leads", func() error {
		lease, err := i.Client.CoordinationV1().Leases(operator.Namespace).Get(i.Ctx, "threeport-agent.control-plane.threeport.io", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if lease.Spec.HolderIdentity == nil {
			return errors.New("the lease has no holder")
		}
		name, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
		pod, err := i.Client.CoreV1().Pods(operator.Namespace).Get(i.Ctx, name, metav1.GetOptions{})
		if err == nil {
			leader = *pod
		}
		return err
	})
	return leader
}

// kill kills the agent of a Pod.
func (i *installation) kill(pod corev1.Pod) {
	i.Helper()
	pid, err := cluster.PodProcess(pod.UID, "/agent")
	i.Must(err)
	i.Must(syscall.Kill(pid, syscall.SIGKILL))
}

// expectReported waits until the control plane has a definition of the object with a text.
func (i *installation) expectReported(text string) {
	i.Helper()
	i.Eventually("the definition with "+text+" in the control plane", func() error {
		rows, err := i.Upstream.API.Resources(i.Ctx, nil)
		for _, row := range rows {
			if *row.ID == i.web.Resources[0].ThreeportID && strings.Contains(string(row.RuntimeDefinition), text) {
				return nil
			}
		}
		return errors.Join(err, fmt.Errorf("none of %d rows has it", len(rows)))
	})
}

// tokenNotRenewed gives the agent a token that ends soon, and removes its permission to write the renewed one. A person replaces the token.
func (i *installation) tokenNotRenewed() {
	i.Helper()
	i.setToken(90 * time.Second)
	i.agent(i, true)
	bindings := i.Client.RbacV1().RoleBindings(operator.Namespace)
	binding, err := bindings.Get(i.Ctx, "threeport-agent-token", metav1.GetOptions{})
	i.Must(err)
	i.expectAlerts(none, monitoring.Fault{
		Name:   "the token is not renewed",
		Alerts: []string{"ThreeportAgentTokenNotRenewed"},
		Inject: func() { i.Must(bindings.Delete(i.Ctx, binding.Name, metav1.DeleteOptions{})) },
		Visible: func() {
			i.ExpectMetric("threeport_agent_token_expiration_timestamp_seconds - time() < 90")
			i.ExpectMetric("threeport_agent_token_renewal_failures_total > 0")
			i.ExpectCondition(i.web, v1alpha1.ConditionDelivered, metav1.ConditionTrue, "")
		},
		Mend: func() {
			binding.ResourceVersion, binding.UID = "", ""
			_, err := bindings.Create(i.Ctx, binding, metav1.CreateOptions{})
			i.Must(err)
			i.setToken(90 * 24 * time.Hour)
		},
		Healed: func() {
			i.ExpectMetric("min(threeport_agent_token_expiration_timestamp_seconds - time()) > 7 * 86400")
			i.Patch(i.object, `{"data": {"key": "changed with a new token"}}`)
			i.expectReported("changed with a new token")
			i.expectDelivery()
		},
	})
}

// setToken creates a renewable token for the agent, and adds it to its Secret.
func (i *installation) setToken(life time.Duration) {
	i.Helper()
	token := i.controlplane("token", "create", "--role=agent", "--name=agent-"+life.String(), "--cluster="+i.uid, "--expires="+life.String(), "--renewable")
	patch := fmt.Appendf(nil, `{"stringData":{"token":%q}}`, token)
	_, err := i.Client.CoreV1().Secrets(operator.Namespace).Patch(i.Ctx, operator.Name+"-cert", types.MergePatchType, patch, metav1.PatchOptions{})
	i.Must(err)
	i.syncPods(operator.Namespace)
}
