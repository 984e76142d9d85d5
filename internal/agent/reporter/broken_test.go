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

// healthyBeside declares a workload with a ConfigMap, and expects it to be reported despite the faults of other kinds.
func (w *world) healthyBeside() {
	w.Helper()
	w.create(configMap("beside"))
	beside := w.track("beside", "v1 ConfigMap beside")
	w.expectState(beside, 0, target.Present, "")
	w.expectStatus(beside, "Healthy")
	w.eventually("the reporter is ready", func() string {
		if !w.reporter.Ready() {
			return "it is not"
		}
		return ""
	})
}

// expectNoHotLoop fails the test if there are more requests than most in 2s. It ignores those about objects of other tests.
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
		w.Errorf("%d requests in %s, want %d at most", got, took, most)
	}
}

func TestInformers_BrokenAPIService_AffectsItsKindsOnly(t *testing.T) {
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

// Each kind of failure becomes a state of the kind, without a hot loop, and is recovered from.
func TestInformers_APIFailure_IsAStateAndRecovers(t *testing.T) {
	t.Parallel()
	isWatch := func(r *http.Request) bool { return strings.Contains(r.URL.RawQuery, "watch=true") }
	for _, c := range []struct {
		reason string
		// answer is the proxy's answer to requests about Deployments and to discovery of apps/v1.
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
				w.eventually("the reporter is ready despite the failure", func() string {
					return complain(!w.reporter.Ready(), "it is not")
				})
			}
			w.expectNoHotLoop(c.most)
			w.proxy.failWith(nil)
			w.expectState(wl, 0, target.Present, "")
			w.expectLives(wl.Resources[0].Ref, "[1]")
			w.eventually("a status is offered", func() string {
				return complain(w.sink.status(wl.Instance) == "", "there is none")
			})
		})
	}
}

// An informer that fails after it has synced does not start a hot loop while discovery and reviews fail too.
func TestInformers_WatchAndDiscoveryFail_NoHotLoop(t *testing.T) {
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

func TestInformers_UnwatchableKind_IsUnavailable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.reader, quick())
	wl := w.track("wl", "authorization.k8s.io/v1 SubjectAccessReview a", "v1 ComponentStatus b", "v1 Binding c")
	for i, resource := range []string{"subjectaccessreviews.authorization.k8s.io", "componentstatuses", "bindings"} {
		w.expectState(wl, i, target.Unavailable, "the API server cannot list and watch "+resource)
	}
	w.healthyBeside()
	w.expectNoHotLoop(60)
}

// With permission in some namespaces only, a kind is watched in each namespace in which a resource is listed, and one more
// namespace causes no reviews of the others.
func TestInformers_PermissionPerNamespace_WatchesListedNamespaces(t *testing.T) {
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
	w.awaitPermission(reader, fmt.Sprintf("%s-%d", w.namespace, n-1)) // else the watcher repeats its reviews
	for i := range n {
		namespace := fmt.Sprintf("%s-%d", w.namespace, i)
		before := len(w.proxy.sent("/selfsubjectaccessreviews"))
		wl := w.track(namespace, "v1 ConfigMap "+namespace+"/conf")
		workloads = append(workloads, wl)
		w.expectState(wl, 0, target.Present, "")
		w.expectLives(wl.Resources[0].Ref, "[1]")
		w.eventually("Pods are watched in the namespace", func() string {
			if w.proxy.watches("/namespaces/"+namespace+"/pods") == 0 {
				return "they are not"
			}
			return ""
		})
		// Five kinds, with reviews of list in the cluster, and of list and watch in the namespace.
		if got := len(w.proxy.sent("/selfsubjectaccessreviews")) - before; got > 5*(2+2)*2 {
			t.Errorf("%d reviews for one more namespace after %d, want about 15", got, i)
		}
	}
	elsewhere := w.track("elsewhere", "v1 ConfigMap conf") // the test's own namespace, without permission
	w.expectState(elsewhere, 0, target.Forbidden, "permission missing: list configmaps in namespace "+w.namespace)
	for _, wl := range workloads[1:] {
		w.targets.Forget(wl.Name)
	}
	w.targets.Forget(elsewhere.Name)
	w.eventually("one namespace is still watched", func() string {
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

func TestInformers_ConfiguredNamespaces_WatchesNoOthers(t *testing.T) {
	t.Parallel()
	config := quick()
	config.Namespaces = []string{uniqueName(t)}
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
