package faults

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/threeport/threeport-agent/internal/server/store"
)

// The control plane's database is replaced by a backup that was taken while it ran. The agent's resync sends the missing
// reports again.
func TestControlPlane_BackupRestored(t *testing.T) {
	t.Parallel()
	w := newWorldWithoutControlPlane(t, takeCluster(t), reportSets)
	control, url := w.startAnotherControlPlane()
	w.setUp(url)
	w.start("--resync-interval=5s")
	d := w.deploy("web", configMap("kept"), configMap("changed"), configMap("deleted"), deployment)
	w.createEvent(w.get(d.Objects[0]), "before")
	w.awaitAgreement(waitTimeout)
	copied, err := store.Backup(w.ctx, w.database)
	w.must(err)
	backup, err := io.ReadAll(copied)
	w.must(errors.Join(err, copied.Close()))

	w.change(d.Objects[1])
	w.createEvent(w.get(d.Objects[1]), "after")
	w.remove(d.Objects[2])
	w.awaitAgreement(waitTimeout)

	w.proxy.setBackend(url, false)
	w.must(control.Stop(waitTimeout))
	file := strings.TrimPrefix(w.database, "sqlite:")
	old, err := filepath.Glob(file + "*")
	w.must(err)
	for _, name := range old {
		w.must(os.Remove(name))
	}
	w.must(os.WriteFile(file, backup, 0o600))
	_, url = w.startAnotherControlPlane()
	w.useReplica(url)
	w.awaitAgreement(waitTimeout)
}
