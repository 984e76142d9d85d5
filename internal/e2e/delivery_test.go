package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/proxy"
	"github.com/threeport/threeport-agent/internal/e2e/world"
	"github.com/threeport/threeport-agent/internal/threeport"
)

func TestDelivery_Outage_LosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.Deploy("before", deployment("before", 2))
	w.ExpectStatus(before, "Healthy")
	w.proxy.SetScript(unavailable)
	during := w.Deploy("during", deployment("during", 2), failingDeployment("broken", 1, "image-pull"))
	w.Remove(before.Objects[0])
	w.ExpectCondition(during, v1alpha1.ConditionDelivered, metav1.ConditionFalse, "")
	w.proxy.SetScript(nil)
	w.ExpectStatus(during, "Down")
	w.AwaitAgreement(world.Expected(before, during)...)
	w.ExpectCondition(during, v1alpha1.ConditionDelivered, metav1.ConditionTrue, "")
	for _, words := range []string{"Delivery fails", "Delivery recovered"} {
		if n := strings.Count(w.agent.Output(), words); n != 1 {
			t.Errorf("the log contains %q %d times for one outage, want once", words, n)
		}
	}
}

func TestDelivery_RejectedReport_ShownInStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d, err := w.Upstream.Register(w.Ctx, w.Workload("rejected", v1alpha1.WorkloadTypeInstance, world.ConfigMap("good"), world.ConfigMap("bad")))
	w.Must(err)
	w.proxy.SetScript(func(r proxy.Request) proxy.Fault {
		if r.WritesTo(world.RowPath(d, 1)) {
			return proxy.Fault{Status: http.StatusBadRequest}
		}
		return proxy.Fault{}
	})
	for _, obj := range d.Objects {
		_, err := w.Upstream.Create(w.Ctx, obj)
		w.Must(err)
	}
	w.Must(w.Upstream.Declare(w.Ctx, d))
	w.ExpectOperation(d, 0, threeport.OperationAdded)
	w.Eventually("the rejected report in the workload's status", func() error {
		cr, err := w.ThreeportWorkload(d)
		if err != nil {
			return err
		}
		del := cr.Status.Delivery
		if del.Rejected != 1 || len(del.Rejections) != 1 || !strings.Contains(del.Rejections[0].Reason, "injected by the test") {
			return fmt.Errorf("the delivery in the status is %+v", del)
		}
		return nil
	})
	if n := w.rejections(world.RowPath(d, 1)); n != 1 {
		t.Errorf("the rejected report was sent %d times by itself, want 1", n)
	}
	if !strings.Contains(w.metrics(), `threeport_agent_reports_total{kind="operation",result="rejected"} 1`) {
		t.Error("the metrics do not count the rejected report")
	}
	// Each change of the annotation causes another attempt.
	retry := func(value string) {
		t.Helper()
		w.patch(world.CustomResource(d), fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationRetryRejected, value))
	}
	retry("once")
	w.Eventually("the agent to send the rejected report again", func() error {
		if n := w.rejections(world.RowPath(d, 1)); n != 2 {
			return fmt.Errorf("the agent sent it %d times, want 2", n)
		}
		return nil
	})
	w.proxy.SetScript(nil)
	retry("twice")
	w.AwaitAgreement(world.Expected(d)...)
	w.ExpectCondition(d, v1alpha1.ConditionDelivered, metav1.ConditionTrue, "")
}

func TestDelivery_ReportAgain_SendsAcceptedReports(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d, other := w.Deploy("again", world.ConfigMap("conf")), w.Deploy("other", world.ConfigMap("other"))
	w.AwaitAgreement(world.Expected(d, other)...)
	writes := func(path string) int {
		return w.proxy.Count(func(r proxy.Request) bool { return r.WritesTo(path) })
	}
	row, beside := writes(world.RowPath(d, 0)), writes(world.RowPath(other, 0))
	for i, value := range []string{"once", "twice"} {
		begin := time.Now()
		w.patch(world.CustomResource(d), fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationReportAgain, value))
		w.Eventually("the agent to send the accepted report again", func() error {
			if n := writes(world.RowPath(d, 0)) - row; n != i+1 {
				return fmt.Errorf("the agent sent it %d times, want %d", n, i+1)
			}
			return nil
		})
		t.Logf("it was sent %s after the annotation", time.Since(begin).Round(time.Millisecond))
	}
	w.AwaitAgreement(world.Expected(d, other)...)
	if n := writes(world.RowPath(other, 0)) - beside; n != 0 {
		t.Errorf("the row of another workload was written %d times", n)
	}
}

func TestDelivery_RejectedReportObjectChanges_SendsAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.Deploy("rejected", world.ConfigMap("conf"))
	w.AwaitAgreement(world.Expected(d)...)
	w.proxy.SetScript(func(r proxy.Request) proxy.Fault {
		if r.WritesTo(world.RowPath(d, 0)) {
			return proxy.Fault{Status: http.StatusBadRequest}
		}
		return proxy.Fault{}
	})
	w.patch(d.Objects[0], `{"data":{"key":"bad"}}`)
	w.Eventually("the control plane to reject the report", func() error {
		cr, err := w.ThreeportWorkload(d)
		if err == nil && cr.Status.Delivery.Rejected != 1 {
			err = fmt.Errorf("the delivery in the status is %+v", cr.Status.Delivery)
		}
		return err
	})
	w.proxy.SetScript(nil)
	w.patch(d.Objects[0], `{"data":{"key":"better"}}`)
	w.AwaitAgreement(world.Expected(d)...)
}

func TestDelivery_RetryAfter_Waits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var throttled []time.Time
	w.proxy.SetScript(func(r proxy.Request) proxy.Fault {
		if len(r.Writes) == 0 || len(throttled) > 0 {
			return proxy.Fault{}
		}
		throttled = append(throttled, time.Now())
		return proxy.Fault{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"2"}}}
	})
	d := w.Deploy("conf", world.ConfigMap("conf"))
	w.AwaitAgreement(world.Expected(d)...)
	if waited := time.Since(throttled[0]); waited < 2*time.Second {
		t.Errorf("the report was accepted %s after a Retry-After of 2 s", waited)
	}
}

// unavailable answers every request with 503.
func unavailable(proxy.Request) proxy.Fault {
	return proxy.Fault{Status: http.StatusServiceUnavailable}
}

// rejections counts the requests that write only to one row. The agent splits a rejected set in halves until the faulty
// report is alone.
func (w *agentWorld) rejections(path string) int {
	return w.proxy.Count(func(r proxy.Request) bool { return r.WritesOnlyTo(path) })
}
