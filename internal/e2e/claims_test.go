package e2e

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// A user of one namespace adds nothing to a workload in another one. The user's pod has the label of the workload, and the user's
// Events name an object of it.
func TestClaims_UserOfOtherNamespace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.Deploy("web", world.ConfigMap("conf"), deployment("web", 1))
	w.ExpectStatus(d, "Healthy")
	conf := w.Get(d.Objects[0])

	about := func(namespace, uid string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, namespace: %s, name: conf, uid: %q}", namespace, uid)
	}
	attacker := w.userOfNamespace(w.Namespace + "-evil")
	attacker.create(fmt.Sprintf(`{apiVersion: v1, kind: Pod,
metadata: {name: stranger, labels: {%s: "%d"}}, spec: {containers: [{name: app, image: "example.com/none:1"}]}}`,
		v1alpha1.LabelWorkloadInstance, d.InstanceID))
	attacker.create(eventAbout("outside", "Forged", about(w.Namespace, string(conf.GetUID()))))
	attacker.create(eventAbout("inside", "Forged", about(attacker.namespace, string(conf.GetUID()))))
	attacker.create(eventAbout("unknown", "Forged", about(w.Namespace, "")))
	w.ExpectCondition(d, v1alpha1.ConditionWatching, metav1.ConditionTrue, "adds namespaces: Pod "+attacker.namespace+"/stranger")

	// This Event is created last, so the agent has seen the others before it.
	w.create(eventAbout("honest", "Honest", about(w.Namespace, string(conf.GetUID()))))
	w.awaitEvent(d, "Honest: ")
	for _, text := range w.eventsOf(d) {
		if strings.Contains(text, "Forged") || strings.Contains(text, "stranger") {
			t.Errorf("the workload has the Event of another user: %s", text)
		}
	}
	w.ExpectStatus(d, "Healthy")

	// The author of the workload may add the namespace.
	w.Patch(world.CustomResource(d), fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationNamespaces, attacker.namespace))
	w.awaitEvent(d, "Scheduled: Pod stranger: ")
}

// eventsOf returns the Events of a workload in the control plane, each as its reason and its message.
func (w *agentWorld) eventsOf(d upstream.Deployed) []string {
	w.Helper()
	events, err := w.Upstream.API.Events(w.Ctx, url.Values{"workloadinstanceid": {strconv.FormatInt(d.InstanceID, 10)}})
	w.Must(err)
	var out []string
	for _, ev := range events {
		out = append(out, *ev.Reason+": "+*ev.Message)
	}
	return out
}

// awaitEvent waits until the control plane has an Event whose text begins with a prefix.
func (w *agentWorld) awaitEvent(d upstream.Deployed, prefix string) {
	w.Helper()
	w.Eventually("an Event "+prefix+" of "+d.Name+" in the control plane", func() error {
		events := w.eventsOf(d)
		if !slices.ContainsFunc(events, func(text string) bool { return strings.HasPrefix(text, prefix) }) {
			return fmt.Errorf("its Events are %q", events)
		}
		return nil
	})
}

// namespaceUser is a user with permissions in one namespace.
type namespaceUser struct {
	*agentWorld
	namespace string
	cluster   *upstream.Upstream
}

// userOfNamespace creates a namespace and a user who may create pods and Events in it.
func (w *agentWorld) userOfNamespace(namespace string) *namespaceUser {
	w.Helper()
	name := "user-of-" + namespace
	_, config, err := w.Cluster.User(name)
	w.Must(err)
	w.removeLater(w.Create("{apiVersion: v1, kind: Namespace, metadata: {name: " + namespace + "}}"))
	w.Create(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: author, namespace: %s}
rules:
- {apiGroups: [""], resources: [pods], verbs: [create]}
- {apiGroups: ["", events.k8s.io], resources: [events], verbs: [create]}
`, namespace))
	w.Create(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: author, namespace: %s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: author}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %s}]
`, namespace, name))
	client, err := upstream.New(rest.CopyConfig(config), upstream.API{})
	w.Must(err)
	return &namespaceUser{w, namespace, client}
}

// create creates an object in the user's namespace. The permission takes effect a moment after its creation.
func (u *namespaceUser) create(manifest string) {
	u.Helper()
	obj := u.Object(manifest)
	obj.SetNamespace(u.namespace)
	u.Eventually("the user to create "+obj.GetKind()+" "+obj.GetName(), func() error {
		_, err := u.cluster.Create(u.Ctx, obj)
		return err
	})
}

// eventAbout is a manifest of an Event. With an eventTime the API server compares no namespaces.
func eventAbout(name, reason, regarding string) string {
	return fmt.Sprintf(`
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: %s}
eventTime: "2026-01-02T03:04:05.000001Z"
reportingController: example.com/author
reportingInstance: author-0
action: Writing
type: Warning
reason: %s
note: words of a user
regarding: %s
`, name, reason, regarding)
}
