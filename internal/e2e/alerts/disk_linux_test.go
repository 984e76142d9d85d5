package alerts

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/monitoring"
)

// The disk of SQLite is full.
func TestAlerts_DatabaseFull(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=700,size=8m"); err != nil {
		t.Fatalf("mount a small disk, which needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	w := newWorld(t, func(w *monitoredWorld) { w.database = "sqlite:" + filepath.Join(disk, "controlplane.db") })
	filler := filepath.Join(disk, "filler")
	var stopWrites func()
	w.expectAlerts(monitoring.Fault{
		Name:   "the database is full",
		Alerts: []string{"ThreeportAPIDatabaseFull", "ThreeportAPIErrors", "ThreeportAgentNotDelivering"},
		Inject: func() {
			w.Fill(filler)
			// The agent soon tries once a minute, which is rare in the test's minutes. Other clients write too.
			stopWrites = w.RepeatRefusedWrites(time.Second)
			w.Patch(w.object, `{"data": {"key": "changed"}}`)
		},
		Visible: func() {
			w.expectReadiness(http.StatusOK)
			w.ExpectCondition(w.deployed, v1alpha1.ConditionDelivered, metav1.ConditionFalse, "503")
			w.ExpectMetric("threeport_agent_delivery_suspended == 1")
			w.ExpectMetric(`controlplane_request_duration_seconds_count{method="POST",code="503"} > 0`)
		},
		Mend: func() {
			stopWrites()
			w.Must(os.Remove(filler))
		},
		Healed: func() {
			w.ExpectCondition(w.deployed, v1alpha1.ConditionDelivered, metav1.ConditionTrue, "")
			w.ExpectMetric("threeport_agent_delivery_suspended == 0")
		},
	})
}
