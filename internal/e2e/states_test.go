package e2e

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/oracle"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/threeport"
)

func TestState_AbsentObjectCreated_BecomesPresent(t *testing.T) {
	w := newWorld(t)
	wl := w.workload("late", v1alpha1.WorkloadTypeInstance, configMap("there"), configMap("late"))
	d, err := w.upstream.Register(w.ctx, wl)
	w.must(err)
	_, err = w.upstream.Create(w.ctx, d.Objects[0])
	w.must(err)
	w.must(w.upstream.Declare(w.ctx, d))
	w.expectState(d, 1, v1alpha1.ResourceAbsent, "")
	w.expectState(d, 0, v1alpha1.ResourcePresent, "")
	w.expectStatus(d, "Down")
	_, err = w.upstream.Create(w.ctx, d.Objects[1])
	w.must(err)
	w.expectState(d, 1, v1alpha1.ResourcePresent, "")
	w.expectStatus(d, "Healthy")
	w.awaitAgreement(tracked(d)...)
}

func TestState_KindInstalled_BecomesPresent(t *testing.T) {
	w := newWorld(t)
	group := w.namespace + ".example.com"
	wl := w.workload("kinds", v1alpha1.WorkloadTypeInstance, configMap("conf"),
		fmt.Sprintf(`{apiVersion: %s/v1, kind: Gadget, metadata: {name: g}, status: {conditions: [{type: Ready, status: "True"}]}}`, group))
	d, err := w.upstream.Register(w.ctx, wl)
	w.must(err)
	_, err = w.upstream.Create(w.ctx, d.Objects[0])
	w.must(err)
	w.must(w.upstream.Declare(w.ctx, d))
	w.expectState(d, 1, v1alpha1.ResourceKindNotInstalled, "Gadget."+group+" is not installed")
	w.expectOperation(d, 0, threeport.OperationAdded)
	w.expectCondition(d.Name, v1alpha1.ConditionWatching, metav1.ConditionFalse)

	definition := w.create(crd(group, "Gadget", "gadgets"))
	w.removeLater(definition)
	w.awaitCondition(definition, "Established")
	_, err = w.upstream.Create(w.ctx, d.Objects[1])
	w.must(err)
	w.expectState(d, 1, v1alpha1.ResourcePresent, "")
	w.expectOperation(d, 1, threeport.OperationAdded)
	w.expectStatus(d, "Healthy")

	// The CRD is deleted with all its objects, and installed again.
	w.must(w.upstream.DeleteObject(w.ctx, definition))
	w.expectOperation(d, 1, threeport.OperationDeleted)
	w.expectState(d, 1, v1alpha1.ResourceKindNotInstalled, "")
	definition = w.create(crd(group, "Gadget", "gadgets"))
	w.awaitCondition(definition, "Established")
	_, err = w.upstream.Create(w.ctx, d.Objects[1])
	w.must(err)
	w.expectState(d, 1, v1alpha1.ResourcePresent, "")
	w.expectOperation(d, 1, threeport.OperationAdded)
}

// restricted limits the agent's user to the given resources.
func (w *world) restricted(resources string) {
	w.Helper()
	name := w.namespace + "-agent"
	var err error
	w.user, _, err = shared.cluster.User(name)
	w.must(err)
	role := w.create(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %s}
rules:
- {apiGroups: [control-plane.threeport.io], resources: ["*"], verbs: ["*"]}
- {apiGroups: ["", apps, batch], resources: [%s], verbs: [get, list, watch]}
`, name, resources))
	_, err = w.upstream.Create(w.ctx, upstream.ClusterRoleBinding(name, name, name))
	w.must(err)
	w.removeLater(role)
}

func TestState_PermissionGranted_BecomesPresent(t *testing.T) {
	w := newWorldWithoutAgent(t)
	w.restricted("pods, events, replicasets, jobs, configmaps")
	w.startAgent()
	d := w.deploy("web", configMap("conf"), deployment("web", 2))
	w.expectState(d, 1, v1alpha1.ResourceForbidden, "permission missing: list deployments.apps in namespace "+w.namespace)
	w.expectState(d, 0, v1alpha1.ResourcePresent, "")
	w.expectOperation(d, 0, threeport.OperationAdded)
	// Its Events can still be read.
	w.eventually(waitTimeout, "Events of the forbidden Deployment's pods", func() error {
		events, err := w.api.Events(w.ctx, url.Values{"workloadresourceinstanceid": {strconv.FormatInt(d.Resources[1].ThreeportID, 10)}})
		if err == nil && len(events) == 0 {
			err = fmt.Errorf("there are none")
		}
		return err
	})
	name := w.namespace + "-more"
	role := w.create(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %s}
rules: [{apiGroups: [apps], resources: [deployments], verbs: [get, list, watch]}]
`, name))
	w.removeLater(role)
	_, err := w.upstream.Create(w.ctx, upstream.ClusterRoleBinding(name, name, w.namespace+"-agent"))
	w.must(err)
	w.expectState(d, 1, v1alpha1.ResourcePresent, "")
	w.expectStatus(d, "Healthy")
	w.awaitAgreement(tracked(d)...)
	if strings.Contains(w.agent.Output(), `"level":"error"`) {
		t.Error("a missing permission was logged as an error")
	}
}

func TestState_PermissionInOneNamespace_Suffices(t *testing.T) {
	w := newWorldWithoutAgent(t)
	name := w.namespace + "-agent"
	var err error
	w.user, _, err = shared.cluster.User(name)
	w.must(err)
	w.create(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %s}
rules: [{apiGroups: [control-plane.threeport.io], resources: ["*"], verbs: ["*"]}]
`, name))
	_, err = w.upstream.Create(w.ctx, upstream.ClusterRoleBinding(name, name, name))
	w.must(err)
	w.create(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules: [{apiGroups: ["", apps, batch], resources: ["*"], verbs: [get, list, watch]}]
`)
	w.create(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %s}]
`, name))
	w.startAgent()
	d := w.deploy("web", configMap("conf"), deployment("web", 2))
	w.expectStatus(d, "Healthy")
	w.awaitAgreement(tracked(d)...)
	w.expectCondition(d.Name, v1alpha1.ConditionWatching, metav1.ConditionTrue)
}

func TestWatchNamespaces_LimitsWatches(t *testing.T) {
	w := newWorldWithoutAgent(t)
	w.startAgent("--watch-namespaces=" + w.namespace)
	d := w.deploy("web", deployment("web", 1), `{apiVersion: v1, kind: ConfigMap, metadata: {name: elsewhere, namespace: default}}`)
	w.removeLater(d.Objects[1])
	w.expectState(d, 0, v1alpha1.ResourcePresent, "")
	w.expectState(d, 1, v1alpha1.ResourceForbidden, "namespace default is not among those that the agent watches")
	w.eventually(waitTimeout, "a report of the Deployment", func() error {
		if len(w.proxy.writes(rowPath(d, 0))) == 0 {
			return fmt.Errorf("there is none")
		}
		return nil
	})
	w.patch(d.Objects[0], `{"metadata":{"annotations":{"changed":"after the first report"}}}`)
	w.expectOperation(d, 0, threeport.OperationModified)
}

func TestState_VersionNotServed_WatchesAnother(t *testing.T) {
	w := newWorld(t)
	wl := w.workload("cron", v1alpha1.WorkloadTypeInstance, `
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "0 3 * * *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: app, image: "example/app:1"}]}}}}
`)
	d, err := w.upstream.Register(w.ctx, wl)
	w.must(err)
	_, err = w.upstream.Create(w.ctx, d.Objects[0])
	w.must(err)
	d.Resources[0].Version = "v1beta1" // removed in Kubernetes 1.25
	w.must(w.upstream.Declare(w.ctx, d))
	w.expectState(d, 0, v1alpha1.ResourcePresent, "version v1beta1 is not served; watched as v1")
	w.expectOperation(d, 0, threeport.OperationAdded)
	w.awaitAgreement(tracked(d)...)
}

func TestInstance_TwoWorkloads_HasWorstStatus(t *testing.T) {
	w := newWorld(t)
	good := w.deploy("good", configMap("good"))
	w.expectStatus(good, "Healthy")
	part := good
	part.Workload = w.workload("bad", v1alpha1.WorkloadTypeInstance, configMap("never-created"))
	part.Resources = []v1alpha1.WorkloadResourceInstance{{Version: "v1", Kind: "ConfigMap", Name: "never-created", Namespace: w.namespace}}
	w.must(w.upstream.Declare(w.ctx, part))
	w.expectStatus(good, "Down")
	w.patch(good.Objects[0], `{"data":{"key":"news of the good part"}}`)
	w.expectState(good, 0, v1alpha1.ResourcePresent, "")
	w.awaitAgreement(oracle.Expected{Deployed: good}, oracle.Expected{Deployed: part, Released: true}) // its resource has no row
	w.expectStatus(good, "Down")
	w.must(w.upstream.DeleteObject(w.ctx, w.cr(part)))
	w.expectStatus(good, "Healthy")
}

func TestReports_ClusterScopedResource(t *testing.T) {
	w := newWorld(t)
	d := w.deploy("class", `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: `+w.namespace+`}, value: 7}`)
	w.expectOperation(d, 0, threeport.OperationAdded)
	w.expectStatus(d, "Healthy")
	w.must(w.upstream.DeleteObject(w.ctx, d.Objects[0]))
	w.expectOperation(d, 0, threeport.OperationDeleted)
}

// expectState waits until the status of a listed resource has a state and a message.
func (w *world) expectState(d upstream.Deployed, resource int, want v1alpha1.ResourceState, message string) {
	w.Helper()
	res := d.Resources[resource]
	w.eventually(waitTimeout, fmt.Sprintf("%s %s to be %s %s in the workload's status", res.Kind, res.Name, want, message), func() error {
		cr, err := w.status(d.Name)
		if err != nil || len(cr.Status.Resources) != len(d.Resources) {
			return fmt.Errorf("%d resources: %w", len(cr.Status.Resources), err)
		}
		if got := cr.Status.Resources[resource]; got.State != want || !strings.Contains(got.Message, message) {
			return fmt.Errorf("it is %s: %s", got.State, got.Message)
		}
		return nil
	})
}

// expectOperation waits until the row of a resource has a last operation.
func (w *world) expectOperation(d upstream.Deployed, resource int, want string) {
	w.Helper()
	res := d.Resources[resource]
	w.eventually(waitTimeout, fmt.Sprintf("%s of %s %s in the control plane", want, res.Kind, res.Name), func() error {
		rows, err := w.api.Resources(w.ctx, nil)
		for _, row := range rows {
			if row.ID != nil && *row.ID == res.ThreeportID && row.LastOperation != nil && *row.LastOperation == want {
				return nil
			}
		}
		return errors.Join(errors.New("it is not"), err)
	})
}
