package kubectl

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/config/crd"
	"github.com/threeport/threeport-agent/internal/kubectl/manifest"
)

// recordedInstallation returns the installation of testdata/input/installation.yaml, which is well.
func recordedInstallation(t *testing.T) *installation {
	t.Helper()
	in := &installation{now: goldenTime, plugin: "v1.2.3", kubernetes: "v1.37.2"}
	file, err := os.Open(filepath.Join("testdata", "input", "installation.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // it is only read
	for d := range manifest.Documents(t.Context(), file.Name(), file) {
		if d.Err != nil {
			t.Fatal(d.Place(), d.Err)
		}
		add, ok := map[string]func(unstructured.Unstructured){
			"Deployment": in.deployments.add, "Pod": in.pods.add, "Lease": in.leases.add, "ThreeportWorkload": in.workloads.add,
			"ValidatingAdmissionPolicy": in.policies.add, "ValidatingAdmissionPolicyBinding": in.bindings.add,
		}[d.Object["kind"].(string)]
		if !ok {
			t.Fatalf("%s: doctor does not read %s", d.Place(), d.Object["kind"])
		}
		add(unstructured.Unstructured{Object: d.Object})
	}
	var served unstructured.Unstructured
	if err := yaml.Unmarshal(crd.Manifest, &served.Object); err != nil {
		t.Fatal(err)
	}
	in.crd.add(served)
	for _, flag := range []string{"cert-dir", "ca-file"} {
		in.certificates = append(in.certificates, certificateFile{
			flag: flag, secret: "threeport-agent-system/" + map[string]string{"cert-dir": "threeport-agent-cert", "ca-file": "threeport-agent-ca"}[flag],
			certificates: []*x509.Certificate{{NotBefore: goldenTime.Add(-time.Hour), NotAfter: goldenTime.Add(100 * 24 * time.Hour)}},
		})
	}
	in.permissions.agent = in.account()
	if in.workloads.skipped+in.deployments.skipped+in.pods.skipped+in.leases.skipped != "" {
		t.Fatalf("an object of %s cannot be decoded", file.Name())
	}
	return in
}

// setCondition changes a condition of a recorded workload.
func setCondition(wl *v1alpha1.ThreeportWorkload, condition string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&wl.Status.Conditions, metav1.Condition{
		Type: condition, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(goldenTime.Add(-5 * time.Minute)),
	})
}

// silence makes the heartbeat of the recorded agent expire.
func (in *installation) silence() {
	for i := range in.leases.items {
		in.leases.items[i].Spec.RenewTime = &metav1.MicroTime{Time: goldenTime.Add(-20 * time.Minute)}
	}
}

// terminate makes the container of the recorded Pod wait after a termination.
func terminate(in *installation, waiting, reason string, code int32) {
	pod := &in.pods.items[0]
	pod.Status.Conditions[0].Status = corev1.ConditionFalse
	pod.Status.ContainerStatuses[0] = corev1.ContainerStatus{
		Name: "agent", RestartCount: 7,
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: waiting}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: reason, ExitCode: code, FinishedAt: metav1.NewTime(goldenTime.Add(-2 * time.Minute)),
		}},
	}
	in.deployments.items[0].Status.AvailableReplicas = 0
}

// situations are installations with the name of their golden file.
var situations = []struct {
	name   string
	change func(in *installation)
	code   int
}{
	{"healthy", func(*installation) {}, exitHealthy},
	{"not-installed", func(in *installation) {
		*in = installation{now: in.now, plugin: in.plugin, kubernetes: in.kubernetes, permissions: permissions{agent: in.permissions.agent}}
		in.workloads.notServed = true
		in.permissions.base = []string{"list, watch, patch threeportworkloads.control-plane.threeport.io"}
	}, exitNotHealthy},
	{"nothing-permitted", func(in *installation) {
		*in = installation{now: in.now, plugin: in.plugin, kubernetes: in.kubernetes, permissions: permissions{agent: in.permissions.agent}}
		for _, skipped := range []*string{
			&in.workloads.skipped, &in.crd.skipped, &in.deployments.skipped, &in.pods.skipped, &in.leases.skipped, &in.policies.skipped,
		} {
			*skipped = "you lack list things"
		}
		in.permissions.skipped = "you lack create subjectaccessreviews.authorization.k8s.io"
		in.certificates = []certificateFile{{flag: "cert-dir", secret: "agents/cert", skipped: "you lack get secrets in agents"}}
	}, exitHealthy},
	{"control-plane-away", func(in *installation) {
		for i := range in.workloads.items {
			wl := &in.workloads.items[i]
			wl.Status.Delivery = v1alpha1.DeliveryStatus{
				Pending: 3, PendingSince: &metav1.Time{Time: goldenTime.Add(-5 * time.Minute)},
				LastError: "POST https://threeport.example.org/v0/workload-report-sets: connection refused",
			}
			setCondition(wl, v1alpha1.ConditionDelivered, metav1.ConditionFalse, "Pending", "3 reports are not delivered yet: "+wl.Status.Delivery.LastError)
		}
	}, exitNotHealthy},
	{"credentials", func(in *installation) {
		wl := &in.workloads.items[0]
		wl.Status.Delivery = v1alpha1.DeliveryStatus{Pending: 1, LastError: "POST /v0/workload-report-sets: HTTP 401: unknown token"}
		setCondition(wl, v1alpha1.ConditionDelivered, metav1.ConditionFalse, "Pending", "1 report is not delivered yet: HTTP 401: unknown token")
		in.certificates[0].certificates[0].NotAfter = goldenTime.Add(-time.Hour)
		in.certificates[1].certificates[0].NotAfter = goldenTime.Add(9 * 24 * time.Hour)
	}, exitNotHealthy},
	{"not-ready", func(in *installation) {
		wl := &in.workloads.items[0]
		wl.Status.Delivery = v1alpha1.DeliveryStatus{Pending: 1, LastError: "not ready: read Secret app/tls: context deadline exceeded"}
		setCondition(wl, v1alpha1.ConditionDelivered, metav1.ConditionFalse, "Pending", "1 report is not delivered yet: "+wl.Status.Delivery.LastError)
	}, exitHealthy},
	{"out-of-memory", func(in *installation) {
		in.silence()
		terminate(in, "CrashLoopBackOff", "OOMKilled", 137)
	}, exitNotHealthy},
	{"missing-secret", func(in *installation) {
		terminate(in, "ContainerCreating", "Error", 2)
		in.pods.items[0].Status.ContainerStatuses[0].LastTerminationState = corev1.ContainerState{}
		in.events.items = []corev1.Event{
			{
				Type: corev1.EventTypeWarning, Reason: "FailedMount", Message: `MountVolume.SetUp failed for volume "cert": secret "threeport-agent-cert" not found`,
				InvolvedObject: corev1.ObjectReference{UID: "pod-uid"}, LastTimestamp: metav1.NewTime(goldenTime.Add(-time.Second)),
			},
			{
				Type: corev1.EventTypeWarning, Reason: "Older", Message: "is not shown",
				InvolvedObject: corev1.ObjectReference{UID: "pod-uid"}, LastTimestamp: metav1.NewTime(goldenTime.Add(-time.Minute)),
			},
		}
		in.leases.items, in.workloads.items = nil, nil
		in.certificates[0] = certificateFile{flag: "cert-dir", secret: in.certificates[0].secret, missing: "the Secret does not exist"}
	}, exitNotHealthy},
	{"two-agents", func(in *installation) {
		second, lease := in.deployments.items[0].DeepCopy(), in.leases.items[0].DeepCopy()
		second.Namespace, lease.Namespace = "other", "other"
		in.deployments.items = append(in.deployments.items, *second)
		in.leases.items = append(in.leases.items, *lease)
	}, exitNotHealthy},
	{"permission-removed", func(in *installation) {
		wl := &in.workloads.items[0]
		wl.Status.Resources[0].State = v1alpha1.ResourceForbidden
		setCondition(wl, v1alpha1.ConditionWatching, metav1.ConditionFalse, "NotAllWatched", "Deployment app/api is Forbidden")
		in.permissions.workloads = []string{"list, watch deployments.apps in namespace app (ThreeportWorkload api lists Deployment app/api)"}
		in.permissions.base = []string{"get, update leases.coordination.k8s.io in agents"}
		in.permissions.incomplete = []string{"pods in app may not be listed, so some may be missing here"}
	}, exitNotHealthy},
	{"secrets-not-watched", func(in *installation) {
		wl := &in.workloads.items[0]
		wl.Status.Resources[0] = v1alpha1.ResourceStatus{Version: "v1", Kind: "Secret", Name: "key", State: v1alpha1.ResourceForbidden}
		setCondition(wl, v1alpha1.ConditionWatching, metav1.ConditionFalse, "NotAllWatched", "Secret app/key is Forbidden")
	}, exitHealthy},
	{"upgrade", func(in *installation) {
		in.plugin = "v1.3.0"
		in.deployments.items[0].Status.UpdatedReplicas = 0
		schema := in.crd.objects[0].DeepCopy()
		versions, _, _ := unstructured.NestedSlice(schema.Object, "spec", "versions")
		unstructured.RemoveNestedField(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "status", "properties", "lease")
		_ = unstructured.SetNestedSlice(schema.Object, versions, "spec", "versions")
		in.crd = reading[unstructured.Unstructured]{}
		in.crd.add(*schema)
		in.policies.items = nil
	}, exitHealthy},
	{"refused-reports", func(in *installation) {
		setCondition(&in.workloads.items[0], v1alpha1.ConditionDelivered, metav1.ConditionFalse, "NotAssigned", "WorkloadInstance 1 is not assigned")
		setCondition(&in.workloads.items[1], v1alpha1.ConditionDelivered, metav1.ConditionFalse, "Rejected", "2 reports were rejected; see delivery.rejections")
		in.workloads.items[1].Status.Delivery = v1alpha1.DeliveryStatus{Rejected: 2, Dropped: 7}
		setCondition(&in.workloads.items[0], v1alpha1.ConditionDurable, metav1.ConditionFalse, "StateFailing", "undelivered reports are lost on restart: no space left on device")
		setCondition(&in.workloads.items[1], v1alpha1.ConditionDurable, metav1.ConditionFalse, "NoStateDir", "undelivered reports are lost on restart; set --state-dir")
		setCondition(&in.workloads.items[0], v1alpha1.ConditionInstanceShared, metav1.ConditionTrue, "SameInstance", "…")
		in.workloads.items[0].DeletionTimestamp = &metav1.Time{Time: goldenTime.Add(-time.Hour)}
		in.workloads.items[0].Finalizers = []string{v1alpha1.Finalizer}
	}, exitNotHealthy},
	{"flags", func(in *installation) {
		d := &in.deployments.items[0]
		d.Spec.Replicas = new(int32(2))
		d.Status.AvailableReplicas, d.Status.UpdatedReplicas = 2, 2
		c := &d.Spec.Template.Spec.Containers[0]
		c.Args = []string{"--threeport-api-server", "https://threeport.example.org", "--sink=stdout", "--resync-interval=0s", "--watch-namespaces=app"}
		c.Env[0].Value = "256MiB"
	}, exitNotHealthy},
	{"agent-before-the-heartbeat", func(in *installation) {
		in.leases.items[0].Annotations = nil
		in.workloads.items[0].Status = v1alpha1.ThreeportWorkloadStatus{}
		in.workloads.items[0].CreationTimestamp = metav1.NewTime(goldenTime.Add(-time.Hour))
	}, exitNotHealthy},
}

func TestDoctor_Situations(t *testing.T) {
	for _, tc := range situations {
		t.Run(tc.name, func(t *testing.T) {
			in := recordedInstallation(t)
			tc.change(in)
			r := diagnose(in)
			var text bytes.Buffer
			if err := r.writeText(&text, false, 0); err != nil {
				t.Fatal(err)
			}
			golden(t, "doctor-"+tc.name+".txt", text.String())
			if errors := r.count(severityError); (errors > 0) != (tc.code == exitNotHealthy) {
				t.Errorf("%d findings are errors, want the exit code %d", errors, tc.code)
			}
			for _, f := range r.Findings {
				if (f.Severity == severityError || f.Severity == severityWarning) && f.Action == "" {
					t.Errorf("the finding %q does not say what to do", f.Message)
				}
			}
		})
	}
}

func TestDoctor_Narrow_WrapsLines(t *testing.T) {
	in := recordedInstallation(t)
	in.silence()
	var text bytes.Buffer
	if err := diagnose(in).writeText(&text, true, 80); err != nil {
		t.Fatal(err)
	}
	golden(t, "doctor-80.txt", text.String())
}

func TestDoctor_JSON(t *testing.T) {
	var text bytes.Buffer
	r := diagnose(recordedInstallation(t))
	if err := writeJSON(&text, r); err != nil {
		t.Fatal(err)
	}
	var decoded doctorReport
	if err := json.Unmarshal(text.Bytes(), &decoded); err != nil {
		t.Fatal(err)
	}
	if len(decoded.Findings) != len(r.Findings) || decoded.Agent != "v1.2.3" || !decoded.Time.Equal(goldenTime) {
		t.Errorf("printed %s, want all findings, the versions and the time", text.String())
	}
}

// A link to a section that does not exist costs time at the worst moment.
func TestDoctor_Links_Exist(t *testing.T) {
	links := map[string]bool{}
	for _, tc := range situations {
		in := recordedInstallation(t)
		tc.change(in)
		for _, f := range diagnose(in).Findings {
			links[f.Link] = true
		}
	}
	for _, a := range deliveryAdvice {
		links[a.link] = true
	}
	for _, o := range outages {
		links[o.link] = true
	}
	delete(links, "")
	if len(links) < 10 {
		t.Errorf("%d links were found, want more", len(links))
	}
	for link := range links {
		file, anchor, _ := strings.Cut(link, "#")
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(file)))
		if err != nil {
			t.Errorf("%s: %v", link, err)
			continue
		}
		hasAnchor := slices.ContainsFunc(strings.Split(string(text), "\n"), func(line string) bool {
			title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
			return ok && strings.HasPrefix(line, "#") && anchorOf(title) == anchor
		})
		if anchor != "" && !hasAnchor {
			t.Errorf("%s has no section #%s", file, anchor)
		}
	}
}

// anchorOf returns the anchor of a heading in Markdown.
func anchorOf(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_':
			return r
		}
		return -1
	}, strings.ToLower(title))
}

func TestFlagOf(t *testing.T) {
	c := &corev1.Container{Command: []string{"/agent"}, Args: []string{"-a=1", "--b", "2", "--c", "--d=x=y", "--a=3", "e=5"}}
	for name, want := range map[string]string{"a": "3", "b": "2", "c": "true", "d": "x=y"} {
		if got, ok := flagOf(c, name); !ok || got != want {
			t.Errorf("--%s is %q, %t; want %q", name, got, ok, want)
		}
	}
	if got, ok := flagOf(c, "e"); ok {
		t.Errorf("e=5 is an argument; got the flag --e=%s", got)
	}
}

func TestDoctor_CompletedPods_AreIgnored(t *testing.T) {
	in := recordedInstallation(t)
	evicted := in.pods.items[0].DeepCopy()
	evicted.UID, evicted.Status.Phase, evicted.Status.Conditions = types.UID("evicted"), corev1.PodFailed, nil
	in.pods.items = append(in.pods.items, *evicted)
	if got := checkPods(in); len(got) != 1 || got[0].Severity != severityOK {
		t.Errorf("the findings are %+v, want one about the running Pod", got)
	}
}

// A migration leaves the stopped Deployment of Threeport's own agent, which has the same label. Alone, a stopped one is a finding.
func TestWithoutStopped(t *testing.T) {
	deployment := func(namespace string, replicas *int32) appsv1.Deployment {
		return appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Spec: appsv1.DeploymentSpec{Replicas: replicas}}
	}
	for _, c := range []struct {
		reason string
		in     []appsv1.Deployment
		want   []string
	}{
		{reason: "a stopped one beside a started one", in: []appsv1.Deployment{deployment("new", new(int32(1))), deployment("old", new(int32(0)))}, want: []string{"new"}},
		{reason: "the default is one replica", in: []appsv1.Deployment{deployment("old", new(int32(0))), deployment("new", nil)}, want: []string{"new"}},
		{reason: "only a stopped one", in: []appsv1.Deployment{deployment("stopped", new(int32(0)))}, want: []string{"stopped"}},
		{reason: "none"},
	} {
		var got []string
		for _, d := range withoutStopped(c.in) {
			got = append(got, d.Namespace)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.reason, got, c.want)
		}
	}
}
