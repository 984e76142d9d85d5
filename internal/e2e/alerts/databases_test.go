package alerts

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/monitoring"
	"github.com/threeport/threeport-agent/internal/testing/postgres"
)

// PostgreSQL is stopped, while the agent observes more Events than it may keep.
func TestAlerts_DatabaseAway(t *testing.T) {
	t.Parallel()
	server, err := postgres.Start(t.Context(), postgres.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	w := newWorld(t, func(w *monitoredWorld) {
		w.database, err = server.CreateDatabase(w.Ctx, "rows", "")
		w.Must(err)
		w.agentFlags = []string{"--state-max-bytes=1Mi"}
	})
	w.expectAlerts(monitoring.Fault{
		Name:   "the database is away",
		Alerts: []string{"ThreeportAPIDatabaseAway", "ThreeportAPIErrors", "ThreeportAgentNotDelivering", "ThreeportAgentEventsDropped"},
		Inject: func() {
			server.Kill()
			w.createEvents(300)
		},
		Visible: func() {
			w.expectReadiness(http.StatusServiceUnavailable)
			w.ExpectCondition(w.deployed, v1alpha1.ConditionDelivered, metav1.ConditionFalse, "503")
			w.ExpectCondition(w.deployed, v1alpha1.ConditionDelivered, metav1.ConditionFalse, "were dropped")
			w.ExpectMetric("threeport_agent_delivery_suspended == 1 and on () threeport_agent_events_dropped_total > 0")
		},
		Mend: func() { w.Must(server.Restart(w.Ctx)) },
		Healed: func() {
			w.expectReadiness(http.StatusOK)
			w.ExpectCondition(w.deployed, v1alpha1.ConditionDelivered, metav1.ConditionTrue, "")
			w.ExpectMetric("threeport_agent_delivery_suspended == 0 and on () threeport_agent_reports_pending == 0")
			w.expectEvent("EventsDropped")
		},
	})
}

// expectReadiness waits until the readiness probe of the API is answered with a status.
func (w *monitoredWorld) expectReadiness(want int) {
	w.Helper()
	w.Eventually(fmt.Sprintf("the readiness probe of the API to be answered with %d", want), func() error {
		_, status, err := w.get("/readyz")
		if err == nil && status != want {
			err = fmt.Errorf("it is answered with %d", status)
		}
		return err
	})
}

// expectEvent waits until the control plane has an Event with a reason.
func (w *monitoredWorld) expectEvent(reason string) {
	w.Helper()
	w.Eventually("an Event with the reason "+reason+" in the control plane", func() error {
		rows, err := w.Upstream.API.Events(w.Ctx, nil)
		for _, row := range rows {
			if row.Reason != nil && *row.Reason == reason {
				return nil
			}
		}
		return errors.Join(err, fmt.Errorf("there are %d others", len(rows)))
	})
}

// createEvents creates Events about the listed object.
func (w *monitoredWorld) createEvents(n int) {
	w.Helper()
	about := corev1.ObjectReference{
		APIVersion: "v1", Kind: "ConfigMap", Namespace: w.Namespace, Name: w.object.GetName(), UID: w.object.GetUID(),
	}
	for i := range n {
		_, err := w.Client.CoreV1().Events(w.Namespace).Create(w.Ctx, &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{GenerateName: "event-"},
			InvolvedObject: about, Type: corev1.EventTypeNormal, Reason: fmt.Sprint("Reason", i), Message: "A message.",
			FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(), Count: 1,
		}, metav1.CreateOptions{})
		w.Must(err)
	}
}
