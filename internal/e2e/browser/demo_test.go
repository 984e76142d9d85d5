package browser

import (
	"context"
	"regexp"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/threeport/threeport-agent/internal/e2e/process"
)

// demoTimeout is longer than a demo takes. A demo compiles its programs.
const demoTimeout = 20 * time.Minute

// The demo runs all programs, with fake nodes.
func TestDemo_Page_ShowsWorkloads(t *testing.T) {
	demo := startDemo(t)
	tab := openTab(t)
	visit(t, tab, findOutput(t, demo.Output(), `The web UI: (\S+)`), listShown)
	until(t, tab, rowCount+" === 7")
	until(t, tab, rowContains("crash", "Down")+" && "+rowContains("crash", "Deployment crash has 0 of 1 replicas ready"))
	until(t, tab, rowContains("web", "Healthy")+" && "+rowContains("web", "demo"))
	eval[bool](t, tab, "window.notReloaded = true")

	config, err := clientcmd.BuildConfigFromFlags("", findOutput(t, demo.Output(), `export KUBECONFIG=(\S+)`))
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.AppsV1().Deployments("demo").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, tab, rowContains("web", "Down")+" && "+rowContains("web", "Deployment demo/web does not exist"))
	if !eval[bool](t, tab, "window.notReloaded === true") {
		t.Error("the page was reloaded, want an update in place")
	}

	crash := eval[string](t, tab, "[...document.querySelectorAll('.open')].find((a) => a.innerText === 'crash').getAttribute('href')")
	click(t, tab, ".open[href="+quote(crash)+"]")
	until(t, tab, workloadShown+" && document.querySelector('.status-word').innerText.startsWith('Down')")
	for name, condition := range map[string]string{
		"the pod below its ReplicaSet": `[...document.querySelectorAll('[role=treeitem][aria-level="3"]')].some((n) => /^Pod crash-.*, (Down|Unhealthy)/.test(n.getAttribute('aria-label')))`,
		"the Events of the pod":        "[...document.querySelectorAll('.event .message')].some((m) => m.innerText.startsWith('Back-off restarting failed container'))",
		"the definition of the object": "[...document.querySelectorAll('.line')].some((l) => l.innerText.includes('kind: Deployment'))",
	} {
		if err := tab.Until(condition); err != nil {
			t.Errorf("the page does not show %s: %v", name, err)
		}
	}
}

// startDemo starts the demo with fake nodes, and returns after its checks succeeded. The test stops it at its end.
func startDemo(t *testing.T) *process.Process {
	t.Helper()
	binary, err := process.Build(t.Context(), "../../../hack", "./cmd/demo", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	demo, err := process.Start(binary, nil, []string{"--timeout=" + demoTimeout.String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := demo.Stop(demoTimeout); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the demo printed:\n%s", demo.Output())
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), demoTimeout)
	defer cancel()
	if _, err := demo.WaitFor(ctx, "Ctrl-C stops everything."); err != nil {
		t.Fatal(err)
	}
	return demo
}

func findOutput(t *testing.T, text, pattern string) string {
	t.Helper()
	match := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if match == nil {
		t.Fatalf("the demo printed no line that matches %s", pattern)
	}
	return match[1]
}
