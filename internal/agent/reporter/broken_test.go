package reporter

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// healthyBeside declares a workload with a ConfigMap, which is to be seen whatever is wrong with other kinds.
func (w *world) healthyBeside() {
	w.Helper()
	w.create(configMap("beside"))
	beside := w.track("beside", "v1 ConfigMap beside")
	w.expectState(beside, 0, target.Present, "")
	w.expectStatus(beside, "Healthy")
	w.eventually("the watcher to be ready", func() string {
		if !w.watcher.Ready() {
			return "it is not"
		}
		return ""
	})
}

// expectNoHotLoop counts requests for a while, but for those about the owners of what other tests create beside this one.
// So many may be within 2s.
func (w *world) expectNoHotLoop(most int) {
	w.Helper()
	count := func() (n int) {
		for _, r := range w.proxy.sent("") {
			others := strings.Contains(r.path, "/t-") && !strings.Contains(r.path, "/"+w.namespace)
			if !others {
				n++
			}
		}
		return n
	}
	before, begin := count(), time.Now()
	w.during(2*time.Second, func() string { return "" })
	got, took := count()-before, time.Since(begin)
	if most := int(time.Duration(most) * took / (2 * time.Second)); got > most {
		w.Errorf("%d requests in %s, expected no more than %d", got, took, most)
	}
}

func TestBrokenAPIServiceConcernsItsKindsOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.reader, quick())
	service := w.create(`
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.NS.example.com}
spec: {group: NS.example.com, version: v1, groupPriorityMinimum: 100, versionPriority: 10, insecureSkipTLSVerify: true,
  service: {name: nothing, namespace: NS}}
`)
	defer w.remove(service)
	wl := w.track("wl", "NS.example.com/v1 Thing one", "NS.example.com/v1 Other two")
	w.expectState(wl, 0, target.Unavailable, "discover "+w.namespace+".example.com/v1")
	w.expectState(wl, 1, target.Unavailable, "discover "+w.namespace+".example.com/v1")
	w.expectStatus(wl, "Unknown")
	w.healthyBeside()
	w.expectNoHotLoop(60)
}

// What the API server answers in each way that it may fail in, and how it shows.
func TestFailuresAreStatesThatHeal(t *testing.T) {
	t.Parallel()
	isWatch := func(r *http.Request) bool { return strings.Contains(r.URL.RawQuery, "watch=true") }
	for _, c := range []struct {
		reason string
		// answer is the proxy's to a request about Deployments; it is asked about discovery of apps/v1 too.
		answer func(*http.Request) int
		state  target.State
		most   int // requests in 2s
	}{
		{"discovery fails", func(r *http.Request) int {
			if strings.HasSuffix(r.URL.Path, "/apis/apps/v1") {
				return 500
			}
			return 0
		}, target.Unavailable, 60},
		{"lists fail, as of a kind whose conversion webhook is down", func(r *http.Request) int {
			if strings.HasSuffix(r.URL.Path, "/deployments") {
				return 500
			}
			return 0
		}, target.Unavailable, 60},
		{"lists are refused although the review permits them", func(r *http.Request) int {
			if strings.HasSuffix(r.URL.Path, "/deployments") {
				return 403
			}
			return 0
		}, target.Forbidden, 60},
		{"watches are refused although the review permits them", func(r *http.Request) int {
			if strings.HasSuffix(r.URL.Path, "/deployments") && isWatch(r) {
				return 403
			}
			return 0
		}, "", 100},
		{"lists are not found although discovery has the kind", func(r *http.Request) int {
			if strings.HasSuffix(r.URL.Path, "/deployments") {
				return 404
			}
			return 0
		}, target.Unavailable, 60},
		{"lists are not allowed although discovery says they are", func(r *http.Request) int {
			if strings.HasSuffix(r.URL.Path, "/deployments") {
				return 405
			}
			return 0
		}, target.Unavailable, 60},
		{"lists are refused and discovery fails", func(r *http.Request) int {
			switch {
			case strings.HasSuffix(r.URL.Path, "/deployments"):
				return 403
			case strings.HasSuffix(r.URL.Path, "/apis/apps/v1"):
				return 503
			}
			return 0
		}, target.Unavailable, 60},
		{"reviews fail", func(r *http.Request) int {
			if strings.Contains(r.URL.Path, "/selfsubjectaccessreviews") {
				return 500
			}
			return 0
		}, target.Unavailable, 120},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, shared.reader, quick())
			w.create(deployment("web"))
			if c.reason != "reviews fail" {
				w.healthyBeside()
			}
			w.proxy.failWith(c.answer)
			wl := w.track("wl", "apps/v1 Deployment web")
			if c.state != "" {
				w.expectState(wl, 0, c.state, "")
				w.expectStatus(wl, "Unknown")
			}
			if c.state != "" {
				w.eventually("to be ready although the failure is known", func() string {
					return complain(!w.watcher.Ready(), "it is not")
				})
			}
			w.expectNoHotLoop(c.most)
			w.proxy.failWith(nil)
			w.expectState(wl, 0, target.Present, "")
			w.expectLives(wl.Resources[0].Ref, "[1]")
			w.eventually("a status to be offered", func() string {
				return complain(w.sink.status(wl.Instance) == "", "none was")
			})
		})
	}
}

// An informer that fails after it has synced is the start of what may become a hot loop: everything else is set
// up already.
func TestWatchThatBreaksWhileNothingCanBeAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.reader, quick())
	w.create(deployment("web"))
	wl := w.track("wl", "apps/v1 Deployment web")
	w.expectState(wl, 0, target.Present, "")
	w.proxy.failWith(func(r *http.Request) int {
		switch {
		case strings.HasSuffix(r.URL.Path, "/deployments"):
			return 404
		case strings.HasPrefix(r.URL.Path, "/apis/apps"), strings.Contains(r.URL.Path, "/selfsubjectaccessreviews"):
			return 500
		}
		return 0
	})
	w.proxy.CloseClientConnections()
	w.expectState(wl, 0, target.Unavailable, "")
	w.expectNoHotLoop(60)
	w.proxy.failWith(nil)
	w.expectState(wl, 0, target.Present, "")
	w.expectLives(wl.Resources[0].Ref, "[1]")
}

func TestKindThatCannotBeWatched(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.reader, quick())
	wl := w.track("wl", "authorization.k8s.io/v1 SubjectAccessReview a", "v1 ComponentStatus b", "v1 Binding c")
	for i, resource := range []string{"subjectaccessreviews.authorization.k8s.io", "componentstatuses", "bindings"} {
		w.expectState(wl, i, target.Unavailable, "the API server cannot list and watch "+resource)
	}
	w.healthyBeside()
	w.expectNoHotLoop(60)
}

// With permission in some namespaces only, each of them is watched in which something is listed, as long as
// something is, and one more costs no review of the others.
func TestNamespacesComeAndGo(t *testing.T) {
	t.Parallel()
	reader, name := user(t, "[]")
	w := newWorld(t, reader, quick())
	binding := `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: ` + name + `, namespace: NAMESPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ` + name + `}]
`
	const n = 5
	var workloads []target.Workload
	for i := range n {
		namespace := fmt.Sprintf("%s-%d", w.namespace, i)
		w.create("{apiVersion: v1, kind: Namespace, metadata: {name: " + namespace + "}}")
		w.create(strings.ReplaceAll(binding, "NAMESPACE", namespace))
		w.create("{apiVersion: v1, kind: ConfigMap, metadata: {name: conf, namespace: " + namespace + "}}")
	}
	w.awaitPermission(reader, fmt.Sprintf("%s-%d", w.namespace, n-1)) // else it asks for it again and again
	for i := range n {
		namespace := fmt.Sprintf("%s-%d", w.namespace, i)
		before := len(w.proxy.sent("/selfsubjectaccessreviews"))
		wl := w.track(namespace, "v1 ConfigMap "+namespace+"/conf")
		workloads = append(workloads, wl)
		w.expectState(wl, 0, target.Present, "")
		w.expectLives(wl.Resources[0].Ref, "[1]")
		w.eventually("pods to be watched there", func() string {
			if w.proxy.watches("/namespaces/"+namespace+"/pods") == 0 {
				return "they are not"
			}
			return ""
		})
		// Five kinds, each asked whether it may list everywhere, and list and watch in the namespace.
		if got := len(w.proxy.sent("/selfsubjectaccessreviews")) - before; got > 5*(2+2)*2 {
			t.Errorf("%d reviews for one namespace more after %d, expected about 15", got, i)
		}
	}
	elsewhere := w.track("elsewhere", "v1 ConfigMap conf") // the test's own namespace, without permission
	w.expectState(elsewhere, 0, target.Forbidden, "permission missing: list configmaps in namespace "+w.namespace)
	for _, wl := range workloads[1:] {
		w.targets.Forget(wl.Name)
	}
	w.targets.Forget(elsewhere.Name)
	w.eventually("one namespace to be watched still", func() string {
		if got := w.proxy.watches("/configmaps"); got != 1 {
			return fmt.Sprintf("%d watches of ConfigMaps", got)
		}
		return ""
	})
	w.expectState(workloads[0], 0, target.Present, "")
}

// awaitPermission returns when a user may list ConfigMaps in a namespace.
func (w *world) awaitPermission(user *rest.Config, namespace string) {
	w.Helper()
	client, err := kubernetes.NewForConfig(user)
	w.must(err)
	w.eventually("the permission in "+namespace, func() string {
		if _, err := client.CoreV1().ConfigMaps(namespace).List(w.ctx, metav1.ListOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
}

func TestConfiguredNamespaces(t *testing.T) {
	config := quick()
	config.Namespaces = []string{unique(t)}
	w := newNamedWorld(t, config.Namespaces[0], shared.reader, config)
	w.run()
	w.create(configMap("conf"))
	wl := w.track("wl", "v1 ConfigMap conf", "v1 ConfigMap default/conf")
	w.expectState(wl, 0, target.Present, "")
	w.expectState(wl, 1, target.Forbidden, "namespace default is not among those that the agent watches")
	for _, r := range w.proxy.sent("/configmaps") {
		if !strings.Contains(r.path, "/namespaces/"+w.namespace+"/") {
			t.Errorf("a request went to %s, outside the configured namespace", r.path)
		}
	}
}
