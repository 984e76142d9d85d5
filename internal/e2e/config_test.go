package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// configMap is a folder with the links that Kubernetes makes for a ConfigMap: a new version replaces the link ..data.
type configMap struct {
	*agentWorld
	dir     string
	version int
}

func (c *configMap) write(text string) (path string) {
	c.Helper()
	c.version++
	version := fmt.Sprintf("..%d", c.version)
	c.Must(os.Mkdir(filepath.Join(c.dir, version), 0o700))
	c.Must(os.WriteFile(filepath.Join(c.dir, version, "agent.yaml"),
		[]byte("apiVersion: agent.threeport.io/v1alpha1\nkind: AgentConfig\n"+text), 0o600))
	c.Must(os.Symlink(version, filepath.Join(c.dir, "..new")))
	c.Must(os.Rename(filepath.Join(c.dir, "..new"), filepath.Join(c.dir, "..data")))
	path = filepath.Join(c.dir, "agent.yaml")
	if c.version == 1 {
		c.Must(os.Symlink(filepath.Join("..data", "agent.yaml"), path))
	}
	return path
}

// A new version of the file takes effect without a restart. Of an invalid one the metric, the log and the probe show that it is not
// in use.
func TestConfig_Changed_IsReloaded(t *testing.T) {
	t.Parallel()
	w := newWorldWithoutAgent(t)
	file := &configMap{agentWorld: w, dir: t.TempDir()}
	w.startAgent("--config=" + file.write("resync-interval: 1h\nsend-concurrency: 2\n"))
	metric := func(name string, want float64) {
		t.Helper()
		w.Eventually(fmt.Sprintf("the metric threeport_agent_config_%s to be %v", name, want), func() error {
			got, err := w.agent.Metric(w.Ctx, "threeport_agent_config_"+name)
			if err == nil && got != want {
				err = fmt.Errorf("it is %v", got)
			}
			return err
		})
	}
	probe := func() string {
		t.Helper()
		page, _, err := world.Fetch(w.Ctx, w.agent.ProbesURL+"/readyz?verbose")
		w.Must(err)
		return page
	}
	metric("settings", 2)
	d := w.Deploy("conf", world.ConfigMap("conf"))
	w.ExpectStatus(d, "Healthy")
	audits := func() float64 {
		t.Helper()
		n, err := w.agent.Metric(w.Ctx, "threeport_agent_audits_total")
		w.Must(err)
		return n
	}
	if n := audits(); n > 0 {
		t.Errorf("%v comparisons within an hour's interval", n)
	}

	file.write("resync-interval: 1s\nsend-concurrency: 16\nzap-log-level: debug\n")
	metric("settings", 3)
	w.Eventually("comparisons at the new interval", func() error {
		if n := audits(); n < 2 {
			return fmt.Errorf("there were %v", n)
		}
		return nil
	})
	more := w.Deploy("more", world.ConfigMap("more"))
	_, err := w.agent.WaitFor(w.Ctx, "The initial sync is done") // at level debug
	w.Must(err)

	file.write("resync-interval: soon\nsend-concurency: 16\n")
	metric("failing", 1)
	for _, text := range []string{`agent.yaml:3: resync-interval is \"soon\"`, `agent.yaml:4: there is no setting \"send-concurency\"`} {
		_, err := w.agent.WaitFor(w.Ctx, text)
		w.Must(err)
	}
	metric("settings", 3)
	w.Must(w.agent.Ready(w.Ctx))
	if page := probe(); !strings.Contains(page, "[!]config") {
		t.Errorf("the detailed probe answers %q", page)
	}

	file.write("resync-interval: 1h\ncluster-name: shop\n")
	metric("failing", 0)
	metric("restart_required", 1)
	_, err = w.agent.WaitFor(w.Ctx, `"settings":"cluster-name"`)
	w.Must(err)
	if page := probe(); strings.Contains(page, "[!]config") {
		t.Errorf("the detailed probe answers %q", page)
	}
	w.AwaitAgreement(world.Expected(d, more)...)
}
