package rules

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/threeport/threeport-agent/internal/reload"
)

// saying returns rules that give each Widget a reason.
func saying(reason string) string {
	return widgetRule("  - {when: 'true', status: Down, reason: " + reason + ", message: is down}")
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// mount is a ConfigMap's directory as the kubelet writes it: files that are links through ..data, which leads to the
// directory of a version.
type mount struct {
	dir string
	n   int
}

// project replaces all files by others at once.
func (m *mount) project(t *testing.T, files map[string]string) {
	t.Helper()
	m.n++
	version := "..2026_01_01_10_00_00." + strings.Repeat("1", m.n)
	if err := os.MkdirAll(filepath.Join(m.dir, version), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		write(t, filepath.Join(m.dir, version, name), text)
	}
	data := filepath.Join(m.dir, "..data")
	old, _ := os.Readlink(data) // there is none at first
	if err := os.Symlink(version, data+"_tmp"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(data+"_tmp", data); err != nil {
		t.Fatal(err)
	}
	for name := range files {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(m.dir, name)); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	}
	if old != "" {
		if err := os.RemoveAll(filepath.Join(m.dir, old)); err != nil {
			t.Fatal(err)
		}
	}
}

// running is a Live whose Run is active.
type running struct {
	*Live
	changed chan struct{}
	logged  chan string
}

func open(t *testing.T, path string, set func(*Live)) *running {
	t.Helper()
	r := &running{changed: make(chan struct{}, 100), logged: make(chan string, 100)}
	log := funcr.New(func(_, args string) { r.logged <- args }, funcr.Options{})
	live, err := Open(path, NewMetrics(prometheus.NewRegistry()), log)
	if err != nil {
		t.Fatal(err)
	}
	if r.Live = live; set != nil {
		set(live)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { live.Run(ctx, func() { r.changed <- struct{}{} }) })
	t.Cleanup(func() { cancel(); group.Wait() })
	return r
}

// says waits until the rules give a Widget a reason and announce the change.
func (r *running) says(t *testing.T, want string) {
	t.Helper()
	for deadline := time.After(30 * time.Second); ; {
		if a, _ := r.Judge(widget, map[string]any{}, now); a.Reason == want {
			return
		}
		select {
		case <-r.changed:
		case <-deadline:
			a, _ := r.Judge(widget, map[string]any{}, now)
			t.Fatalf("the rules say %q, want %q", a.Reason, want)
		}
	}
}

// counts waits until the metric has a number of rules.
func (r *running) counts(t *testing.T, want float64) {
	t.Helper()
	for deadline := time.After(30 * time.Second); testutil.ToFloat64(r.metrics.InUse) != want; {
		select {
		case <-r.changed:
		case <-deadline:
			t.Fatalf("threeport_agent_health_rules is %v, want %v", testutil.ToFloat64(r.metrics.InUse), want)
		}
	}
}

// logs waits for a log line with a text.
func (r *running) logs(t *testing.T, want string) {
	t.Helper()
	for deadline := time.After(30 * time.Second); ; {
		select {
		case line := <-r.logged:
			if strings.Contains(line, want) {
				return
			}
		case <-deadline:
			t.Fatalf("nothing is logged of %q", want)
		}
	}
}

func TestLive_ReplacedFile_IsReloaded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	write(t, path, saying("One"))
	r := open(t, path, onlyNotified)
	r.says(t, "One")
	write(t, path, saying("Two"))
	r.says(t, "Two")
	write(t, path+".new", saying("Three"))
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	r.says(t, "Three")
}

// onlyNotified disables polling, so that a test depends on notifications.
func onlyNotified(l *Live) { l.files.PollInterval = time.Hour }

func TestLive_ReplacedConfigMap_IsReloaded(t *testing.T) {
	for _, name := range []string{"", "a.yaml"} {
		t.Run("mounted at "+name, func(t *testing.T) {
			m := &mount{dir: t.TempDir()}
			m.project(t, map[string]string{"a.yaml": saying("One"), "README": "no rules: ["})
			r := open(t, filepath.Join(m.dir, name), onlyNotified)
			r.says(t, "One")
			m.project(t, map[string]string{"a.yaml": saying("Two")})
			r.says(t, "Two")
			m.project(t, map[string]string{"a.yaml": saying("Three"), "b.yaml": "rules: []"})
			r.says(t, "Three")
		})
	}
}

func TestLive_InvalidRules_AreRejected(t *testing.T) {
	m := &mount{dir: t.TempDir()}
	m.project(t, map[string]string{"a.yaml": saying("One")})
	r := open(t, m.dir, onlyNotified)
	m.project(t, map[string]string{"a.yaml": saying("'Two words'")})
	r.logs(t, `a.yaml:6:42: rule Widget.example.org, check 1: \"Two words\" is not one CamelCase word`)
	r.says(t, "One")
	if got := testutil.ToFloat64(r.metrics.Rejected); got != 1 {
		t.Errorf("threeport_agent_health_rules_failing is %v, want 1", got)
	}
	m.project(t, map[string]string{"a.yaml": saying("One")})
	r.logs(t, "valid again and unchanged")
	if got := testutil.ToFloat64(r.metrics.Rejected); got != 0 {
		t.Errorf("threeport_agent_health_rules_failing is %v for rules that were in use, want 0", got)
	}
	m.project(t, map[string]string{"a.yaml": "rules: ["})
	r.logs(t, "this is not YAML")
	m.project(t, map[string]string{"a.yaml": ""})
	r.logs(t, "there are no rules in it")
	m.project(t, nil)
	r.logs(t, "no files in")
	r.says(t, "One")
	m.project(t, map[string]string{"a.yaml": saying("Four"), "b.yaml": strings.ReplaceAll(saying("Five"), "Widget", "Gadget")})
	r.says(t, "Four")
	r.counts(t, 2) // the second file's link may come after the first one leads to the new version
	if got := testutil.ToFloat64(r.metrics.Rejected); got != 0 {
		t.Errorf("threeport_agent_health_rules_failing is %v, want 0", got)
	}
}

func TestLive_DeletedFiles_PreviousRulesStay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rules")
	write(t, filepath.Join(dir, "a.yaml"), saying("One"))
	r := open(t, dir, func(l *Live) { l.files.PollInterval = 10 * time.Millisecond })
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	r.logs(t, "no such file")
	r.says(t, "One")
	write(t, filepath.Join(dir, "a.yaml"), saying("Two"))
	r.says(t, "Two")
}

// TestLive_WithoutNotification_Polls replaces the target of a link, which causes no notification in the watched
// directory.
func TestLive_WithoutNotification_Polls(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "one", "a.yaml"), saying("One"))
	write(t, filepath.Join(root, "two", "a.yaml"), saying("Two"))
	link := filepath.Join(root, "link")
	if err := os.Symlink("one", link); err != nil {
		t.Fatal(err)
	}
	r := open(t, link, func(l *Live) { l.files.PollInterval = 10 * time.Millisecond })
	r.says(t, "One")
	if err := os.Symlink("two", link+"_tmp"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(link+"_tmp", link); err != nil {
		t.Fatal(err)
	}
	r.says(t, "Two")
}

func TestLive_ChangeBeforeRun_IsReloaded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	write(t, path, saying("One"))
	r := open(t, path, func(l *Live) {
		l.files.PollInterval = time.Hour
		write(t, path, saying("Two"))
	})
	r.says(t, "Two")
}

func TestLive_FailedRules_AreCounted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	write(t, path, widgetRule("  - {when: object.status.up, status: Healthy}"))
	r := open(t, path, nil)
	if _, ok := r.Judge(widget, map[string]any{}, now); !ok {
		t.Error("the rules do not cover Widget")
	}
	if got := testutil.ToFloat64(r.metrics.failures.WithLabelValues(RuleFailed)); got != 1 {
		t.Errorf("threeport_agent_health_rule_failures_total is %v, want 1", got)
	}
}

func TestOpen_InvalidRules_IsAnError(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "wrong", "a.yaml"), "rules: [{}]")
	write(t, filepath.Join(dir, "long", "a.yaml"), "# "+strings.Repeat("x", reload.MaxBytes))
	write(t, filepath.Join(dir, "empty", "a.txt"), "not read")
	write(t, filepath.Join(dir, "folder", "a.yaml", "b.yaml"), "not: read")
	for name, want := range map[string]string{
		"wrong": "a.yaml:1:9: rule number 1", "long": "exceed 4194304 bytes", "none": "no such file", "empty": "", "folder": "", "wrong/a.yaml": "a.yaml:1:9",
	} {
		_, err := Open(filepath.Join(dir, name), NewMetrics(prometheus.NewRegistry()), logr.Discard())
		_, loadErr := Load(filepath.Join(dir, name))
		for _, err := range []error{err, loadErr} {
			if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", name, err, want)
			}
		}
	}
}
