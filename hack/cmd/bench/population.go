package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/threeport/threeport-agent/internal/e2e/etcd"
)

// podsPerWorkload is the number of Pods of a workload, except the last one.
const podsPerWorkload = 50

// writers is the number of concurrent writes to etcd.
const writers = 16

// deployment is a namespace with a Deployment, its ReplicaSet and Pods, a ConfigMap, a Secret, and a Service with its endpoints. No
// controller acts on them; the bench writes their statuses too.
type deployment struct {
	namespace string
	pods      int
	revision  int
	created   int // the number of Pods so far, for their names
	object    *appsv1.Deployment
	set       *appsv1.ReplicaSet
	live      []*corev1.Pod // in the order of their creation
	reported  int           // the number of the first live Pods that have an Event
}

// population writes the objects of a cluster.
type population struct {
	etcd      *etcd.Client
	created   int // the number of Events so far, for their names
	events    int // the number of stored Events
	tracked   []*deployment
	untracked []*deployment
}

// populate creates the Pods of a size.
func populate(ctx context.Context, client *etcd.Client, s size) (*population, error) {
	p := &population{etcd: client, tracked: deployments("app", s.tracked), untracked: deployments("other", s.untracked)}
	for _, all := range [][]*deployment{p.untracked, p.tracked} {
		err := p.each(ctx, all, p.create)
		if err != nil {
			return nil, err
		}
	}
	return p, nil
}

// resetEvents deletes all Events, and creates one about each tracked Pod.
func (p *population) resetEvents(ctx context.Context) error {
	if err := p.etcd.DeleteAll(ctx, "events"); err != nil {
		return err
	}
	p.events = 0
	for _, d := range p.tracked {
		d.reported = 0
	}
	return p.reportPods(ctx, p.tracked)
}

// deployments divides Pods among Deployments.
func deployments(prefix string, pods int) []*deployment {
	var out []*deployment
	for i := 0; pods > 0; i++ {
		n := min(pods, podsPerWorkload)
		pods -= n
		out = append(out, &deployment{namespace: fmt.Sprintf("%s-%d", prefix, i), pods: n})
	}
	return out
}

// each writes the objects of many Deployments.
func (p *population) each(ctx context.Context, all []*deployment, do func(context.Context, *deployment) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, d := range all {
		group.Go(func() error { return do(ctx, d) })
	}
	return group.Wait()
}

func meta(namespace, name string, owner *metav1.OwnerReference) metav1.ObjectMeta {
	out := metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uuid.NewUUID(), CreationTimestamp: metav1.Now(), Generation: 1}
	if owner != nil {
		out.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return out
}

func ownerOf(apiVersion, kind string, of metav1.ObjectMeta) *metav1.OwnerReference {
	yes := true
	return &metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: of.Name, UID: of.UID, Controller: &yes, BlockOwnerDeletion: &yes}
}

func (p *population) put(ctx context.Context, resource string, object runtime.Object, of metav1.ObjectMeta) error {
	return p.etcd.Put(ctx, resource+"/"+of.Namespace+"/"+of.Name, object)
}

// create creates all objects of a Deployment.
func (p *population) create(ctx context.Context, d *deployment) error {
	namespace := &corev1.Namespace{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: meta("", d.namespace, nil),
		Spec:   corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}},
		Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive},
	}
	config := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: meta(d.namespace, "conf", nil),
		Data: map[string]string{"application.properties": strings.Repeat("key=value\n", 50)},
	}
	secret := &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: meta(d.namespace, "credentials", nil),
		Data: map[string][]byte{"password": []byte("hunter2")}, Type: corev1.SecretTypeOpaque,
	}
	service := &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: meta(d.namespace, "web", nil),
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, ClusterIPs: []string{corev1.ClusterIPNone}, Type: corev1.ServiceTypeClusterIP,
			Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}
	if err := p.etcd.Put(ctx, "namespaces/"+d.namespace, namespace); err != nil {
		return err
	}
	for _, item := range []struct {
		resource string
		object   runtime.Object
		meta     metav1.ObjectMeta
	}{
		{"configmaps", config, config.ObjectMeta},
		{"secrets", secret, secret.ObjectMeta},
		{"services/specs", service, service.ObjectMeta},
	} {
		if err := p.put(ctx, item.resource, item.object, item.meta); err != nil {
			return err
		}
	}
	slice := &discoveryv1.EndpointSlice{
		TypeMeta:    metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta:  meta(d.namespace, "web-x7k2p", ownerOf("v1", "Service", service.ObjectMeta)),
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: "web"}
	ready := true
	for i := range d.pods {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.1.0.%d", i)}, Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &ready},
		})
	}
	if err := p.put(ctx, "endpointslices", slice, slice.ObjectMeta); err != nil {
		return err
	}
	return p.rollOut(ctx, d)
}

// rollOut replaces the ReplicaSet and all Pods, as a rollout does.
func (p *population) rollOut(ctx context.Context, d *deployment) error {
	d.revision++
	replicas := int32(d.pods) //nolint:gosec // at most podsPerWorkload
	if d.object == nil {
		d.object = &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: meta(d.namespace, "web", nil)}
	}
	hash := fmt.Sprintf("7887448%d", d.revision)
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web", "pod-template-hash": hash}}, Spec: podSpec(d.revision)}
	d.object.Generation = int64(d.revision)
	d.object.Spec = appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Template: template}
	d.object.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.object.Generation, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable", LastUpdateTime: metav1.Now()},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable", LastUpdateTime: metav1.Now()},
		},
	}
	if err := p.put(ctx, "deployments", d.object, d.object.ObjectMeta); err != nil {
		return err
	}
	if old := d.set; old != nil {
		none := int32(0)
		old.Spec.Replicas, old.Status = &none, appsv1.ReplicaSetStatus{ObservedGeneration: 1}
		if err := p.put(ctx, "replicasets", old, old.ObjectMeta); err != nil {
			return err
		}
	}
	d.set = &appsv1.ReplicaSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"},
		ObjectMeta: meta(d.namespace, "web-"+hash, ownerOf("apps/v1", "Deployment", d.object.ObjectMeta)),
		Spec:       appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: d.object.Spec.Selector, Template: template},
		Status: appsv1.ReplicaSetStatus{
			ObservedGeneration: 1, Replicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas, FullyLabeledReplicas: replicas,
		},
	}
	d.set.Labels = template.Labels
	if err := p.put(ctx, "replicasets", d.set, d.set.ObjectMeta); err != nil {
		return err
	}
	return p.replacePods(ctx, d, d.pods)
}

// replacePods replaces the first n Pods by new ones.
func (p *population) replacePods(ctx context.Context, d *deployment, n int) error {
	for _, old := range d.live[:min(n, len(d.live))] {
		if err := p.etcd.Delete(ctx, "pods/"+old.Namespace+"/"+old.Name); err != nil {
			return err
		}
	}
	d.live = slices.Clone(d.live[min(n, len(d.live)):])
	d.reported = len(d.live)
	for i := range n {
		pod := newPod(d, i)
		if err := p.put(ctx, "pods", pod, pod.ObjectMeta); err != nil {
			return err
		}
		d.live = append(d.live, pod)
	}
	return nil
}

// newPod returns a ready Pod of the usual size, about 7 KB as JSON, with the fields that controllers and kubelet write.
func newPod(d *deployment, i int) *corev1.Pod {
	d.created++
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: meta(d.namespace, fmt.Sprintf("%s-%05x", d.set.Name, d.created), ownerOf("apps/v1", "ReplicaSet", d.set.ObjectMeta)),
		Spec:       podSpec(d.revision),
	}
	now := metav1.Now()
	pod.GenerateName, pod.Labels = d.set.Name+"-", d.set.Labels
	pod.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "kube-controller-manager", Operation: "Update", APIVersion: "v1", Time: &now, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(specFields)},
		{Manager: "kubelet", Operation: "Update", APIVersion: "v1", Time: &now, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(statusFields), Subresource: "status"},
	}
	pod.Spec.NodeName = fmt.Sprintf("node-%d", i)
	started := true
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.1.0.%d", i), PodIPs: []corev1.PodIP{{IP: fmt.Sprintf("10.1.0.%d", i)}},
		HostIP: "10.0.0.1", StartTime: &now, QOSClass: corev1.PodQOSBurstable,
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "app", Ready: true, Started: &started, Image: pod.Spec.Containers[0].Image,
			ImageID:     "registry.example/app@sha256:9b7c9e5b2d0f4a7d8e1f3c6a5b4d2e1f0a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d",
			ContainerID: "containerd://" + strings.ReplaceAll(string(uuid.NewUUID()), "-", ""),
			State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		}},
	}
	for _, condition := range []corev1.PodConditionType{
		"PodReadyToStartContainers", corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled,
	} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	return pod
}

func podSpec(revision int) corev1.PodSpec {
	seconds, mode := int64(30), int32(0o644)
	tolerated := int64(300)
	probe := &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080), Scheme: corev1.URISchemeHTTP}},
		PeriodSeconds: 10, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3,
	}
	container := corev1.Container{
		Name: "app", Image: fmt.Sprintf("registry.example/app:%d", revision), ImagePullPolicy: corev1.PullIfNotPresent,
		Ports:         []corev1.ContainerPort{{ContainerPort: 8080, Name: "http", Protocol: corev1.ProtocolTCP}},
		LivenessProbe: probe, ReadinessProbe: probe,
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
		},
		VolumeMounts:           []corev1.VolumeMount{{Name: "kube-api-access-x", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true}},
		TerminationMessagePath: corev1.TerminationMessagePathDefault, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
	}
	for i := range 10 {
		container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", i), Value: "https://service.example.svc.cluster.local:8443/path"})
	}
	return corev1.PodSpec{
		Containers: []corev1.Container{container}, RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst,
		ServiceAccountName: "default", SchedulerName: corev1.DefaultSchedulerName, TerminationGracePeriodSeconds: &seconds,
		SecurityContext: &corev1.PodSecurityContext{},
		Tolerations: []corev1.Toleration{
			{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &tolerated},
			{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &tolerated},
		},
		Volumes: []corev1.Volume{{Name: "kube-api-access-x", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			DefaultMode: &mode, Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: &tolerated}},
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}}},
			},
		}}}},
	}
}

// reportPods creates one Event about each new Pod of Deployments, such as those of the kubelet.
func (p *population) reportPods(ctx context.Context, all []*deployment) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, d := range all {
		for _, pod := range d.live[d.reported:] {
			ev := p.newEvent(pod, time.Now())
			group.Go(func() error { return p.put(ctx, "events", ev, ev.ObjectMeta) })
		}
	}
	for _, d := range all {
		d.reported = len(d.live)
	}
	return group.Wait()
}

// reportOne creates an Event about one Pod of each Deployment.
func (p *population) reportOne(ctx context.Context) error {
	for _, d := range p.tracked {
		ev := p.newEvent(d.live[0], time.Now())
		if err := p.put(ctx, "events", ev, ev.ObjectMeta); err != nil {
			return err
		}
	}
	return nil
}

// podEventReason is the reason of all Events of the bench.
const podEventReason = "Pulled"

// newEvent returns a new Event about a Pod, not yet stored.
func (p *population) newEvent(pod *corev1.Pod, at time.Time) *corev1.Event {
	p.created++
	p.events++
	when := metav1.NewTime(at.Truncate(time.Second))
	ev := &corev1.Event{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"}, ObjectMeta: meta(pod.Namespace, fmt.Sprintf("%s.%x", pod.Name, p.created), nil),
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, FieldPath: "spec.containers{app}",
		},
		Reason: podEventReason, Message: `Container image "` + pod.Spec.Containers[0].Image + `" already present on machine`, Type: corev1.EventTypeNormal,
		Source: corev1.EventSource{Component: "kubelet", Host: pod.Spec.NodeName}, Count: 1, FirstTimestamp: when, LastTimestamp: when,
		ReportingController: "kubelet", ReportingInstance: pod.Spec.NodeName,
	}
	ev.Generation = 0
	ev.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "kubelet", Operation: "Update", APIVersion: "v1", Time: &when, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(eventFields),
	}}
	return ev
}

// The managed fields that the API server keeps of the usual writers.
const (
	specFields = `{"f:metadata":{"f:generateName":{},"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"x\"}":{}}},` +
		`"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:env":{".":{},"k:{\"name\":\"SETTING_0\"}":{".":{},"f:name":{},"f:value":{}},` +
		`"k:{\"name\":\"SETTING_1\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"SETTING_2\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},` +
		`"f:imagePullPolicy":{},"f:livenessProbe":{".":{},"f:failureThreshold":{},"f:httpGet":{".":{},"f:path":{},"f:port":{},"f:scheme":{}}},"f:name":{},` +
		`"f:ports":{".":{},"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:name":{},"f:protocol":{}}},"f:resources":{".":{},` +
		`"f:limits":{".":{},"f:memory":{}},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}},"f:terminationMessagePath":{},"f:terminationMessagePolicy":{}}},` +
		`"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:terminationGracePeriodSeconds":{}}}`
	statusFields = `{"f:status":{"f:conditions":{".":{},"k:{\"type\":\"ContainersReady\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},` +
		`"f:type":{}},"k:{\"type\":\"Initialized\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Ready\"}":` +
		`{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}}},"f:containerStatuses":{},"f:hostIP":{},"f:phase":{},"f:podIP":{},` +
		`"f:podIPs":{".":{},"k:{\"ip\":\"10.1.0.1\"}":{".":{},"f:ip":{}}},"f:startTime":{}}}`
	eventFields = `{"f:count":{},"f:firstTimestamp":{},"f:involvedObject":{},"f:lastTimestamp":{},"f:message":{},"f:reason":{},"f:reportingComponent":{},` +
		`"f:reportingInstance":{},"f:source":{"f:component":{},"f:host":{}},"f:type":{}}`
)
