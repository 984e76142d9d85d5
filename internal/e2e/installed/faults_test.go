package installed

import (
	"fmt"
	"maps"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1 "k8s.io/api/core/v1"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/monitoring"
	"github.com/threeport/threeport-agent/internal/e2e/operator"
)

// Each fault is visible in a status, a metric and an alert with a section of the runbook. The programs heal without a restart.
func TestInstalled_FaultsAlertAndHeal(t *testing.T) {
	for name, by := range installers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := install(t, by)
			i.apiDown()
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

func (i *installation) apiDown() {
	i.Helper()
	scale := func(replicas string) {
		i.kubectl("scale", "-n", apiNamespace, "deployment/"+apiName, "--replicas="+replicas)
		i.awaitRollout(apiNamespace, apiName)
	}
	i.expectAlerts(func(pod corev1.Pod) bool { return pod.Namespace == apiNamespace }, monitoring.Fault{
		Name:   "the API is down",
		Alerts: []string{"ThreeportAgentNotDelivering", "ThreeportAPIAbsent"},
		Inject: func() {
			scale("0")
			i.Patch(i.object, `{"data": {"key": "changed"}}`) // the report is pending until the end of the outage
		},
		Visible: func() {
			i.ExpectCondition(i.web, v1alpha1.ConditionDelivered, metav1.ConditionFalse, "not delivered yet")
			i.ExpectMetric("threeport_agent_delivery_suspended == 1 and threeport_agent_reports_pending > 0")
		},
		Mend: func() { scale("1") },
		Healed: func() {
			i.ExpectCondition(i.web, v1alpha1.ConditionDelivered, metav1.ConditionTrue, "")
			i.ExpectMetric("sum(threeport_agent_delivery_suspended) == 0")
		},
	})
}
