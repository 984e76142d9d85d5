package faults

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/e2e/world"
	"github.com/threeport/threeport-agent/internal/server/store"
)

// The control plane's database is replaced by a backup that was taken while it ran. The agent's resync sends the missing
// reports again.
func TestControlPlane_BackupRestored(t *testing.T) {
	t.Parallel()
	w := newWorldWithoutControlPlane(t, shared.clusters.Take(t), reportSets)
	control, url := w.startAnotherControlPlane()
	w.setUp(url)
	w.start("--resync-interval=5s")
	d := w.deploy("web", world.ConfigMap("kept"), world.ConfigMap("changed"), world.ConfigMap("deleted"), deployment)
	w.createEvent(w.Get(d.Objects[0]), "before")
	w.awaitAgreement()
	copied, err := store.Backup(w.Ctx, w.database)
	w.Must(err)
	backup, err := io.ReadAll(copied)
	w.Must(errors.Join(err, copied.Close()))

	w.change(d.Objects[1])
	w.createEvent(w.Get(d.Objects[1]), "after")
	w.Remove(d.Objects[2])
	w.awaitAgreement()

	w.proxy.RemoveBackend(url)
	w.Must(control.Stop(world.Timeout))
	file := strings.TrimPrefix(w.database, "sqlite:")
	old, err := filepath.Glob(file + "*")
	w.Must(err)
	for _, name := range old {
		w.Must(os.Remove(name))
	}
	w.Must(os.WriteFile(file, backup, 0o600))
	_, url = w.startAnotherControlPlane()
	w.Upstream.API = upstream.API{URL: url}
	w.awaitAgreement()
}
