package alerts

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/monitoring"
	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// Watches of three kinds fail in different ways at the same time.
func TestAlerts_Watches(t *testing.T) {
	t.Parallel()
	var link *clusterLink
	w := newWorld(t, func(w *monitoredWorld) {
		link = w.newClusterLink()
		// A watch that stalls again is restarted after 45 seconds. client-go waits up to a minute between attempts: ten watches of a kind
		// fail more often.
		w.minute = 6 * time.Second
		namespaces := []string{w.Namespace}
		for n := range 9 {
			namespaces = append(namespaces, fmt.Sprintf("%s-%d", w.Namespace, n))
			w.Create("{apiVersion: v1, kind: Namespace, metadata: {name: " + namespaces[n+1] + "}}")
		}
		w.agentFlags = []string{
			"--kubeconfig=" + link.kubeconfig, "--resync-interval=2s", "--watch-namespaces=" + strings.Join(namespaces, ","),
		}
	})
	account := w.Deploy("account", `{apiVersion: v1, kind: ServiceAccount, metadata: {name: account}}`)
	quota := w.Deploy("quota", `{apiVersion: v1, kind: ResourceQuota, metadata: {name: quota}, spec: {hard: {pods: "9"}}}`)
	w.ExpectState(account, 0, v1alpha1.ResourcePresent, "")
	w.ExpectState(quota, 0, v1alpha1.ResourcePresent, "")
	var stopChanges func()
	w.expectAlerts(
		monitoring.Fault{
			Name:   "watches deliver nothing",
			Alerts: []string{"ThreeportAgentWatchStalled"},
			Inject: func() {
				link.set(&link.stalled, "/configmaps")
				stopChanges = w.Repeat(100*time.Millisecond, func(ctx context.Context) error {
					patch := fmt.Appendf(nil, `{"data":{"key":%q}}`, time.Now())
					_, err := w.Client.CoreV1().ConfigMaps(w.Namespace).Patch(ctx, w.object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
					return err
				})
			},
			Visible: func() { w.ExpectMetric(`threeport_agent_watch_stalls_total{resource="configmaps"} > 0`) },
			Mend:    func() { link.set(&link.stalled, "") },
			Healed:  func() { stopChanges(); w.ExpectState(w.deployed, 0, v1alpha1.ResourcePresent, "") },
		},
		monitoring.Fault{
			Name:   "the API server fails requests for a kind",
			Alerts: []string{"ThreeportAgentWatchErrors"},
			Inject: func() { link.set(&link.failing, "/resourcequotas"); link.cut() },
			Visible: func() {
				w.ExpectState(quota, 0, v1alpha1.ResourceUnavailable, "")
				w.ExpectCondition(quota, v1alpha1.ConditionWatching, metav1.ConditionFalse, "is Unavailable")
				w.ExpectMetric(`threeport_agent_watch_errors_total{resource="resourcequotas"} > 0`)
			},
			Mend:   func() { link.set(&link.failing, "") },
			Healed: func() { w.ExpectState(quota, 0, v1alpha1.ResourcePresent, "") },
		},
		monitoring.Fault{
			Name:   "the permission for a kind is missing",
			Alerts: []string{"ThreeportAgentKindNotWatched"},
			// An open watch continues: the API server checks permissions at its start only.
			Inject: func() { w.Permit(world.AgentUser, "serviceaccounts", false); link.cut() },
			Visible: func() {
				w.ExpectState(account, 0, v1alpha1.ResourceForbidden, "")
				w.ExpectCondition(account, v1alpha1.ConditionWatching, metav1.ConditionFalse, "is Forbidden")
				w.ExpectStatus(account, "Unknown")
				w.ExpectMetric(`threeport_agent_unwatched_kinds{state="Forbidden"} == 1`)
			},
			Mend: func() { w.Permit(world.AgentUser, "serviceaccounts", true) },
			Healed: func() {
				w.ExpectState(account, 0, v1alpha1.ResourcePresent, "")
				w.ExpectCondition(account, v1alpha1.ConditionWatching, metav1.ConditionTrue, "")
				w.ExpectStatus(account, "Healthy")
				w.ExpectMetric(`threeport_agent_unwatched_kinds{state="Forbidden"} == 0`)
			},
		},
	)
}

// clusterLink forwards the requests of the agent to the API server of the cluster, and injects faults into their answers.
type clusterLink struct {
	kubeconfig string // for the agent
	server     *httptest.Server

	mu      sync.Mutex
	stalled string        // the end of the paths of watches that stay open and deliver nothing. Empty for none.
	failing string        // the end of the paths of requests that are answered with 500. Empty for none.
	changed chan struct{} // closed at the next change
}

// newClusterLink starts a link, and stops it at the end of the test.
func (w *monitoredWorld) newClusterLink() *clusterLink {
	w.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", w.Cluster.AgentKubeconfig)
	w.Must(err)
	transport, err := rest.TransportFor(config)
	w.Must(err)
	to, err := url.Parse(config.Host)
	w.Must(err)
	l := &clusterLink{kubeconfig: filepath.Join(w.TempDir(), "kubeconfig"), changed: make(chan struct{})}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, Transport: transport, FlushInterval: -1,
		ModifyResponse: func(answer *http.Response) error {
			if answer.Request.URL.Query().Get("watch") == "true" {
				answer.Body = &watchBody{ReadCloser: answer.Body, link: l, request: answer.Request, opened: time.Now()}
			}
			return nil
		},
		ErrorHandler: func(answer http.ResponseWriter, _ *http.Request, _ error) { answer.WriteHeader(http.StatusBadGateway) },
	}
	l.server = httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, req *http.Request) {
		if ending, _ := l.read(&l.failing); ending != "" && strings.HasSuffix(req.URL.Path, ending) {
			http.Error(answer, "injected by the test", http.StatusInternalServerError)
			return
		}
		forward.ServeHTTP(answer, req)
	}))
	w.Cleanup(func() {
		l.server.CloseClientConnections()
		l.server.Close()
	})
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["link"] = &clientcmdapi.Cluster{Server: l.server.URL}
	kubeconfig.Contexts["link"] = &clientcmdapi.Context{Cluster: "link"}
	kubeconfig.CurrentContext = "link"
	w.Must(clientcmd.WriteToFile(*kubeconfig, l.kubeconfig))
	return l
}

// cut closes all connections of the agent.
func (l *clusterLink) cut() { l.server.CloseClientConnections() }

func (l *clusterLink) set(setting *string, value string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*setting = value
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *clusterLink) read(setting *string) (value string, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return *setting, l.changed
}

// watchBody is the answer to a watch.
type watchBody struct {
	io.ReadCloser
	link    *clusterLink
	request *http.Request
	opened  time.Time
}

// Read delivers nothing while the watch is stalled. A new watch delivers for a second before, so that the agent lists the kind.
func (b *watchBody) Read(out []byte) (int, error) {
	n, err := b.ReadCloser.Read(out)
	for {
		ending, changed := b.link.read(&b.link.stalled)
		if ending == "" || !strings.HasSuffix(b.request.URL.Path, ending) || time.Since(b.opened) < time.Second {
			return n, err
		}
		select {
		case <-changed:
		case <-b.request.Context().Done():
			return n, err
		}
	}
}
