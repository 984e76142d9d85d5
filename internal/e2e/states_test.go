package e2e

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/oracle"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/e2e/world"
	"github.com/threeport/threeport-agent/internal/threeport"
)

func TestState_AbsentObjectCreated_BecomesPresent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	wl := w.Workload("late", v1alpha1.WorkloadTypeInstance, world.ConfigMap("there"), world.ConfigMap("late"))
	d, err := w.Upstream.Register(w.Ctx, wl)
	w.Must(err)
	_, err = w.Upstream.Create(w.Ctx, d.Objects[0])
	w.Must(err)
	w.Must(w.Upstream.Declare(w.Ctx, d))
	w.ExpectState(d, 1, v1alpha1.ResourceAbsent, "")
	w.ExpectState(d, 0, v1alpha1.ResourcePresent, "")
	w.ExpectStatus(d, "Down")
	_, err = w.Upstream.Create(w.Ctx, d.Objects[1])
	w.Must(err)
	w.ExpectState(d, 1, v1alpha1.ResourcePresent, "")
	w.ExpectStatus(d, "Healthy")
	w.AwaitAgreement(world.Expected(d)...)
}

func TestState_KindInstalled_BecomesPresent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	group := w.Namespace + ".example.com"
	wl := w.Workload("kinds", v1alpha1.WorkloadTypeInstance, world.ConfigMap("conf"),
		fmt.Sprintf(`{apiVersion: %s/v1, kind: Gadget, metadata: {name: g}, status: {conditions: [{type: Ready, status: "True"}]}}`, group))
	d, err := w.Upstream.Register(w.Ctx, wl)
	w.Must(err)
	_, err = w.Upstream.Create(w.Ctx, d.Objects[0])
	w.Must(err)
	w.Must(w.Upstream.Declare(w.Ctx, d))
	w.ExpectState(d, 1, v1alpha1.ResourceKindNotInstalled, "Gadget."+group+" is not installed")
	w.ExpectOperation(d, 0, threeport.OperationAdded)
	w.ExpectCondition(d, v1alpha1.ConditionWatching, metav1.ConditionFalse, "")

	definition := w.InstallCRD(group, "Gadget", "gadgets")
	w.removeLater(definition)
	_, err = w.Upstream.Create(w.Ctx, d.Objects[1])
	w.Must(err)
	w.ExpectState(d, 1, v1alpha1.ResourcePresent, "")
	w.ExpectOperation(d, 1, threeport.OperationAdded)
	w.ExpectStatus(d, "Healthy")

	// The CRD is deleted with all its objects, and installed again.
	w.Remove(definition)
	w.ExpectOperation(d, 1, threeport.OperationDeleted)
	w.ExpectState(d, 1, v1alpha1.ResourceKindNotInstalled, "")
	w.InstallCRD(group, "Gadget", "gadgets")
	_, err = w.Upstream.Create(w.Ctx, d.Objects[1])
	w.Must(err)
	w.ExpectState(d, 1, v1alpha1.ResourcePresent, "")
	w.ExpectOperation(d, 1, threeport.OperationAdded)
}

// restricted limits the agent's user to the given resources.
func (w *agentWorld) restricted(resources string) {
	w.Helper()
	name := w.Namespace + "-agent"
	var err error
	w.kubeconfig, _, err = w.Cluster.User(name)
	w.Must(err)
	role := w.create(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %s}
rules:
- {apiGroups: [control-plane.threeport.io], resources: ["*"], verbs: ["*"]}
- {apiGroups: ["", apps, batch], resources: [%s], verbs: [get, list, watch]}
`, name, resources))
	_, err = w.Upstream.Create(w.Ctx, upstream.ClusterRoleBinding(name, name, name))
	w.Must(err)
	w.removeLater(role)
}

func TestState_PermissionGranted_BecomesPresent(t *testing.T) {
	t.Parallel()
	w := newWorldWithoutAgent(t)
	w.restricted("pods, events, replicasets, jobs, configmaps")
	w.startAgent()
	d := w.Deploy("web", world.ConfigMap("conf"), deployment("web", 2))
	w.ExpectState(d, 1, v1alpha1.ResourceForbidden, "permission missing: list deployments.apps in namespace "+w.Namespace)
	w.ExpectState(d, 0, v1alpha1.ResourcePresent, "")
	w.ExpectOperation(d, 0, threeport.OperationAdded)
	// Its Events can still be read.
	w.Eventually("Events of the forbidden Deployment's pods", func() error {
		events, err := w.Upstream.API.Events(w.Ctx, url.Values{"workloadresourceinstanceid": {strconv.FormatInt(d.Resources[1].ThreeportID, 10)}})
		if err == nil && len(events) == 0 {
			err = errors.New("the control plane has no such row")
		}
		return err
	})
	name := w.Namespace + "-more"
	role := w.create(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %s}
rules: [{apiGroups: [apps], resources: [deployments], verbs: [get, list, watch]}]
`, name))
	w.removeLater(role)
	_, err := w.Upstream.Create(w.Ctx, upstream.ClusterRoleBinding(name, name, w.Namespace+"-agent"))
	w.Must(err)
	w.ExpectState(d, 1, v1alpha1.ResourcePresent, "")
	w.ExpectStatus(d, "Healthy")
	w.AwaitAgreement(world.Expected(d)...)
	if strings.Contains(w.agent.Output(), `"level":"error"`) {
		t.Error("a missing permission was logged as an error")
	}
}

func TestState_CustomResourceForbidden_LabelledClusterRoleGrants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	group := w.Namespace + ".example.com"
	w.removeLater(w.InstallForbiddenCRD(group, "Gadget", "gadgets"))
	d := w.Deploy("gadgets", world.ConfigMap("conf"),
		fmt.Sprintf(`{apiVersion: %s/v1, kind: Gadget, metadata: {name: g}, status: {conditions: [{type: Ready, status: "True"}]}}`, group))
	w.ExpectState(d, 1, v1alpha1.ResourceForbidden, "permission missing: list gadgets."+group)
	w.ExpectState(d, 1, v1alpha1.ResourceForbidden, "a ClusterRole with the label "+upstream.AggregateLabel+"=true grants it")
	w.ExpectStatus(d, "Unknown")

	w.removeLater(w.CreateObject(upstream.WatchRole(group, group, "gadgets")))
	w.ExpectState(d, 1, v1alpha1.ResourcePresent, "")
	w.ExpectStatus(d, "Healthy")
	w.AwaitAgreement(world.Expected(d)...)
}

func TestState_SecretForbidden_IsNotChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.Deploy("web", world.ConfigMap("conf"), `{apiVersion: v1, kind: Secret, metadata: {name: credentials}}`)
	w.ExpectState(d, 1, v1alpha1.ResourceForbidden, "Secrets are checked only with the component config/components/secrets")
	w.ExpectStatus(d, "Healthy")
	w.ExpectCondition(d, v1alpha1.ConditionHealthy, metav1.ConditionTrue, "1 resource is not checked")

	w.permitSecrets()
	w.ExpectState(d, 1, v1alpha1.ResourcePresent, "")
	w.ExpectOperation(d, 1, threeport.OperationAdded)
	w.AwaitAgreement(world.Expected(d)...)
	w.ExpectCondition(d, v1alpha1.ConditionHealthy, metav1.ConditionTrue, "every listed resource is Healthy")
}

func TestState_PermissionInOneNamespace_Suffices(t *testing.T) {
	t.Parallel()
	w := newWorldWithoutAgent(t)
	name := w.Namespace + "-agent"
	var err error
	w.kubeconfig, _, err = w.Cluster.User(name)
	w.Must(err)
	w.create(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %s}
rules: [{apiGroups: [control-plane.threeport.io], resources: ["*"], verbs: ["*"]}]
`, name))
	_, err = w.Upstream.Create(w.Ctx, upstream.ClusterRoleBinding(name, name, name))
	w.Must(err)
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
	d := w.Deploy("web", world.ConfigMap("conf"), deployment("web", 2))
	w.ExpectStatus(d, "Healthy")
	w.AwaitAgreement(world.Expected(d)...)
	w.ExpectCondition(d, v1alpha1.ConditionWatching, metav1.ConditionTrue, "")
}

func TestWatchNamespaces_LimitsWatches(t *testing.T) {
	t.Parallel()
	w := newWorldWithoutAgent(t)
	w.startAgent("--watch-namespaces=" + w.Namespace)
	d := w.Deploy("web", deployment("web", 1), `{apiVersion: v1, kind: ConfigMap, metadata: {name: elsewhere, namespace: default}}`)
	w.removeLater(d.Objects[1])
	w.ExpectState(d, 0, v1alpha1.ResourcePresent, "")
	w.ExpectState(d, 1, v1alpha1.ResourceForbidden, "namespace default is not among those that the agent watches")
	w.Eventually("a report of the Deployment", func() error {
		if len(w.proxy.Requested(world.RowPath(d, 0))) == 0 {
			return errors.New("the agent has sent none")
		}
		return nil
	})
	w.patch(d.Objects[0], `{"metadata":{"annotations":{"changed":"after the first report"}}}`)
	w.ExpectOperation(d, 0, threeport.OperationModified)
}

func TestState_VersionNotServed_WatchesAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	wl := w.Workload("cron", v1alpha1.WorkloadTypeInstance, `
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "0 3 * * *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: app, image: "example/app:1"}]}}}}
`)
	d, err := w.Upstream.Register(w.Ctx, wl)
	w.Must(err)
	_, err = w.Upstream.Create(w.Ctx, d.Objects[0])
	w.Must(err)
	d.Resources[0].Version = "v1beta1" // removed in Kubernetes 1.25
	w.Must(w.Upstream.Declare(w.Ctx, d))
	w.ExpectState(d, 0, v1alpha1.ResourcePresent, "version v1beta1 is not served; watched as v1")
	w.ExpectOperation(d, 0, threeport.OperationAdded)
	w.AwaitAgreement(world.Expected(d)...)
}

func TestInstance_TwoWorkloads_HasWorstStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	good := w.Deploy("good", world.ConfigMap("good"))
	w.ExpectStatus(good, "Healthy")
	part := good
	part.Workload = w.Workload("bad", v1alpha1.WorkloadTypeInstance, world.ConfigMap("never-created"))
	part.Resources = []v1alpha1.WorkloadResourceInstance{{Version: "v1", Kind: "ConfigMap", Name: "never-created", Namespace: w.Namespace}}
	w.Must(w.Upstream.Declare(w.Ctx, part))
	w.ExpectStatus(good, "Down")
	w.patch(good.Objects[0], `{"data":{"key":"news of the good part"}}`)
	w.ExpectState(good, 0, v1alpha1.ResourcePresent, "")
	w.AwaitAgreement(oracle.Expected{Deployed: good}, oracle.Expected{Deployed: part, Released: true}) // its resource has no row
	w.ExpectStatus(good, "Down")
	w.Remove(world.CustomResource(part))
	w.ExpectStatus(good, "Healthy")
}

func TestReports_ClusterScopedResource(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.Deploy("class", `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: `+w.Namespace+`}, value: 7}`)
	w.ExpectOperation(d, 0, threeport.OperationAdded)
	w.ExpectStatus(d, "Healthy")
	w.Remove(d.Objects[0])
	w.ExpectOperation(d, 0, threeport.OperationDeleted)
}

// Somebody declares a workload with IDs that the control plane does not know. Nothing is called delivered, and the reports
// follow when the IDs are corrected.
func TestWorkload_WrongIDs_AreShownAndHeal(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{"report sets": nil, "v0": {"--report-sets=false"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, flags...)
			d, err := w.Upstream.Register(w.Ctx, w.Workload("web", v1alpha1.WorkloadTypeInstance, world.ConfigMap("conf")))
			w.Must(err)
			for _, obj := range d.Objects {
				w.CreateObject(obj)
			}
			resource := d
			resource.Resources = slices.Clone(d.Resources)
			resource.Resources[0].ThreeportID++
			instance := resource
			instance.InstanceID++
			for _, wrong := range []struct {
				declared upstream.Deployed
				row      string
			}{
				{instance, fmt.Sprintf("the control plane has no WorkloadInstance %d", instance.InstanceID)},
				{resource, fmt.Sprintf("the control plane has no WorkloadResourceInstance %d", resource.Resources[0].ThreeportID)},
			} {
				w.Must(w.Upstream.Declare(w.Ctx, wrong.declared))
				w.ExpectCondition(d, v1alpha1.ConditionDelivered, metav1.ConditionFalse, wrong.row)
				w.expectKubernetesEvent(d.Name, "Warning", wrong.row)
			}
			w.Must(w.Upstream.Declare(w.Ctx, d))
			w.ExpectCondition(d, v1alpha1.ConditionDelivered, metav1.ConditionTrue, "")
			w.expectKubernetesEvent(d.Name, "Normal", "all reports are delivered")
			w.expectKubernetesEvent(d.Name, "Normal", "The workload is Healthy")
			w.ExpectOperation(d, 0, "ADDED")
			w.AwaitAgreement(world.Expected(d)...)
		})
	}
}

// Somebody declares a ThreeportWorkload that lists a resource of another instance. The control plane rejects its reports. They
// are no longer of interest when the ThreeportWorkload is deleted.
func TestWorkload_ResourceOfAnotherInstance_RejectionsEndWithIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	web := w.Deploy("web", world.ConfigMap("conf"))
	db := w.Deploy("db", deployment("db", 1))
	w.ExpectStatus(web, "Healthy")
	w.ExpectStatus(db, "Healthy")
	rejected := func(of upstream.Deployed, want bool) {
		w.Helper()
		w.Eventually("the rejections of "+of.Name, func() error {
			workload, err := w.ThreeportWorkload(of)
			if err != nil {
				return err
			}
			if n := workload.Status.Delivery.Rejected; want && n < 2 || !want && n > 0 {
				return fmt.Errorf("%d reports are rejected, first %+v", n, workload.Status.Delivery.Rejections)
			}
			return nil
		})
	}
	wrong := db
	wrong.Name, wrong.InstanceID = db.Name+"-wrong", web.InstanceID
	w.Must(w.Upstream.Declare(w.Ctx, wrong))
	rejected(wrong, true) // the object and its Events
	w.Remove(world.CustomResource(wrong))
	rejected(web, false)
	w.ExpectCondition(web, v1alpha1.ConditionDelivered, metav1.ConditionTrue, "")
}

// expectKubernetesEvent waits for an Event about a ThreeportWorkload, as kubectl describe shows it.
func (w *agentWorld) expectKubernetesEvent(workload, eventType, note string) {
	w.Helper()
	w.Eventually("an Event about the ThreeportWorkload: "+note, func() error {
		list, err := w.Client.CoreV1().Events(metav1.NamespaceDefault).List(w.Ctx, metav1.ListOptions{
			FieldSelector: "involvedObject.kind=ThreeportWorkload,involvedObject.name=" + workload,
		})
		if err != nil {
			return err
		}
		var notes []string
		for _, ev := range list.Items {
			if ev.Type == eventType && strings.Contains(ev.Message, note) {
				return nil
			}
			notes = append(notes, ev.Type+" "+ev.Message)
		}
		return fmt.Errorf("the Events are %q", notes)
	})
}

// Two instances that list one object both get its Events, and both ThreeportWorkloads name the other. Through v0, which has one row
// for an Event, the instance that was declared first keeps the Events, whichever ID is lower.
func TestWorkload_SharedResource_IsShownAndEachGetsItsEvents(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{"report sets": nil, "v0": {"--report-sets=false"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, flags...)
			ids := func(d upstream.Deployed) []string {
				events, err := w.Upstream.API.Events(w.Ctx, url.Values{"workloadinstanceid": {strconv.FormatInt(d.InstanceID, 10)}})
				w.Must(err)
				var out []string
				for _, ev := range events {
					if uid, _, _ := strings.Cut(*ev.RuntimeEventUID, "/"); *ev.Reason == "ScalingReplicaSet" {
						out = append(out, uid)
					}
				}
				slices.Sort(out)
				return out
			}
			first := w.Deploy("first", deployment("web", 2))
			w.ExpectStatus(first, "Healthy")
			w.AwaitAgreement(world.Expected(first)...)
			before := ids(first)
			if len(before) == 0 {
				t.Fatal("the first instance has no Event")
			}
			declared, err := w.ThreeportWorkload(first)
			w.Must(err)
			w.Eventually("a second after the declaration, the resolution of its time", func() error {
				if age := time.Since(declared.CreationTimestamp.Time); age < time.Second {
					return fmt.Errorf("the first is declared since %s", age)
				}
				return nil
			})
			second, err := w.Upstream.Register(w.Ctx, w.Workload("second", v1alpha1.WorkloadTypeInstance, deployment("web", 2)))
			w.Must(err)
			w.Must(w.Upstream.Declare(w.Ctx, second))
			w.ExpectCondition(first, v1alpha1.ConditionResourcesShared, metav1.ConditionTrue, second.Name)
			w.ExpectCondition(second, v1alpha1.ConditionResourcesShared, metav1.ConditionTrue, first.Name)
			w.ExpectStatus(second, "Healthy")
			w.patch(first.Objects[0], `{"spec":{"replicas":3}}`)
			w.Eventually("the Events of the instances", func() error {
				got := ids(first)
				if len(got) <= len(before) {
					return fmt.Errorf("the first instance has %d Events, want more than %d", len(got), len(before))
				}
				want := got
				if flags != nil {
					want = nil
				}
				if other := ids(second); !slices.Equal(other, want) {
					return fmt.Errorf("the second instance has the Events %v, want %v", other, want)
				}
				return nil
			})
			// The second instance keeps its rows when it is the only one, and gets the Events that follow.
			kept := len(ids(second))
			w.Remove(world.CustomResource(first))
			w.Eventually("the condition is removed", func() error {
				workload, err := w.ThreeportWorkload(second)
				if c := meta.FindStatusCondition(workload.Status.Conditions, v1alpha1.ConditionResourcesShared); c != nil {
					return fmt.Errorf("the condition is %v", c)
				}
				return err
			})
			w.patch(first.Objects[0], `{"spec":{"replicas":4}}`)
			w.Eventually("a further Event of the second instance", func() error {
				got := ids(second)
				if unique := slices.Compact(slices.Clone(got)); len(got) <= kept || len(unique) != len(got) {
					return fmt.Errorf("the second instance has the Events %v, want more than %d different ones", got, kept)
				}
				return nil
			})
		})
	}
}
