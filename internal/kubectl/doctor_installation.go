package kubectl

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/threeport/threeport-agent/api/v1alpha1"
)

// Names in config/default, which are the same in every overlay, and places in the documents.
const (
	agentLabel         = "app.kubernetes.io/name=threeport-agent"
	heartbeatLease     = "threeport-agent-heartbeat.control-plane.threeport.io"
	leaderLease        = "threeport-agent.control-plane.threeport.io"
	workloadCRD        = "threeportworkloads.control-plane.threeport.io"
	connectingAgents   = "docs/operating.md#connecting-agents"
	runbook            = "docs/runbook.md#"
	applyConfiguration = "Apply your overlay of config/default again"
)

// The resources that doctor reads besides ThreeportWorkloads.
var (
	crdResource        = resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
	deploymentResource = resource("apps", "v1", "deployments")
	podResource        = resource("", "v1", "pods")
	leaseResource      = resource("coordination.k8s.io", "v1", "leases")
	policyResource     = resource("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies")
	bindingResource    = resource("admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings")
)

// installation is what doctor has read about the agent of a cluster. The checks only look at it.
type installation struct {
	now        time.Time // of the API server
	plugin     string    // its version
	kubernetes string    // the version of the API server
	namespace  string    // that the user chose; empty for all

	crd          reading[unstructured.Unstructured]
	deployments  reading[appsv1.Deployment]
	pods         reading[corev1.Pod]
	leases       reading[coordinationv1.Lease]
	events       reading[corev1.Event]
	workloads    reading[v1alpha1.ThreeportWorkload]
	policies     reading[admissionv1.ValidatingAdmissionPolicy]
	bindings     reading[admissionv1.ValidatingAdmissionPolicyBinding]
	certificates []certificateFile
	permissions  permissions
}

// reading has the objects of one or more requests.
type reading[T any] struct {
	items   []T
	objects []unstructured.Unstructured // the same
	// skipped says which objects were not read, and why; empty if all were read.
	skipped string
	// notServed is true if the API server does not serve the resource.
	notServed bool
}

// skip records why some objects were not read.
func (r *reading[T]) skip(what string, err error) {
	why := what + ": " + err.Error()
	if apierrors.IsForbidden(err) {
		why = "you lack " + what
	}
	r.skipped = joinReasons(r.skipped, why)
}

// joinReasons joins the reasons why objects were not read. Empty ones are left out.
func joinReasons(reasons ...string) string {
	return strings.Join(slices.DeleteFunc(reasons, func(reason string) bool { return reason == "" }), "; ")
}

// add adds an object. One that this version of the plugin cannot decode is skipped.
func (r *reading[T]) add(u unstructured.Unstructured) {
	var item T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &item); err != nil {
		r.skip("decode "+u.GetKind()+" "+u.GetName(), err)
		return
	}
	r.items, r.objects = append(r.items, item), append(r.objects, u)
}

// inNamespace ends the name of a request: "list pods in all namespaces".
func inNamespace(namespace string) string {
	if namespace == metav1.NamespaceAll {
		return " in all namespaces"
	}
	return " in " + namespace
}

// addList adds the objects of a list. It returns whether the user may list them.
func (r *reading[T]) addList(ctx context.Context, client dynamic.Interface, scope listScope, options metav1.ListOptions, where string) (permitted bool) {
	reader := &objectReader{dynamic: client}
	err := reader.list(ctx, scope, options, func(u *unstructured.Unstructured) { r.add(*u) })
	switch {
	case apierrors.IsNotFound(err):
		r.notServed = true
	case err != nil:
		r.skip("list "+scope.GroupResource().String()+where, err)
	}
	return !apierrors.IsForbidden(err)
}

// addNamed adds the object with a name, if it exists.
func (r *reading[T]) addNamed(ctx context.Context, client dynamic.Interface, scope listScope, name, where string) {
	u, err := client.Resource(scope.GroupVersionResource).Namespace(scope.namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		r.skip("get "+scope.GroupResource().String()+where, err)
	default:
		r.add(*u)
	}
}

// listLabelled lists the objects of the agent in the chosen namespace or in all. Without the permission for all, it lists them in some
// namespaces.
func listLabelled[T any](ctx context.Context, client dynamic.Interface, of schema.GroupVersionResource, chosen string, some []string) reading[T] {
	options := metav1.ListOptions{LabelSelector: agentLabel}
	var all reading[T]
	if all.addList(ctx, client, listScope{of, chosen}, options, inNamespace(chosen)) || chosen != "" {
		return all
	}
	for _, namespace := range some {
		all.addList(ctx, client, listScope{of, namespace}, options, inNamespace(namespace))
	}
	return all
}

// readInstallation reads all that the checks need. Only a cluster that does not answer, or that refuses the user, is an error.
func readInstallation(ctx context.Context, cluster *connection, plugin string) (*installation, error) {
	client, err := cluster.dynamic()
	if err != nil {
		return nil, err
	}
	discovery, err := cluster.flags.ToDiscoveryClient()
	if err != nil {
		return nil, clusterFailure("make a client", err)
	}
	server, err := discovery.ServerVersion()
	if err != nil {
		return nil, clusterFailure("ask for the version of the cluster", err)
	}
	in := &installation{plugin: plugin, kubernetes: server.GitVersion, namespace: *cluster.flags.Namespace}
	in.workloads.addList(ctx, client, listScope{GroupVersionResource: workloads}, metav1.ListOptions{}, "")
	in.crd.addNamed(ctx, client, listScope{GroupVersionResource: crdResource}, workloadCRD, "")
	in.deployments = listLabelled[appsv1.Deployment](ctx, client, deploymentResource, in.namespace, in.leaseNamespaces())
	in.deployments.items = withoutStopped(in.deployments.items)
	in.pods = listLabelled[corev1.Pod](ctx, client, podResource, in.namespace, in.leaseNamespaces())
	for _, namespace := range in.agentNamespaces() {
		scope := listScope{leaseResource, namespace}
		in.leases.addNamed(ctx, client, scope, heartbeatLease, inNamespace(namespace))
		in.events.addList(ctx, client, listScope{events, namespace}, metav1.ListOptions{}, inNamespace(namespace))
	}
	for _, d := range in.deployments.items {
		if elects(&d) {
			in.leases.addNamed(ctx, client, listScope{leaseResource, d.Namespace}, leaderLease, inNamespace(d.Namespace))
		}
	}
	in.policies.addList(ctx, client, listScope{GroupVersionResource: policyResource}, metav1.ListOptions{}, "")
	in.bindings.addList(ctx, client, listScope{GroupVersionResource: bindingResource}, metav1.ListOptions{}, "")
	in.readCertificates(ctx, client)
	in.permissions = readPermissions(ctx, cluster, in)
	return in, ctx.Err()
}

// withoutStopped leaves out the Deployments without replicas if others have some. A migration stops the Deployment of Threeport's own
// agent, which has the same label. To start it again is the wrong advice.
func withoutStopped(deployments []appsv1.Deployment) []appsv1.Deployment {
	started := slices.DeleteFunc(slices.Clone(deployments), func(d appsv1.Deployment) bool {
		return d.Spec.Replicas != nil && *d.Spec.Replicas == 0
	})
	if len(started) == 0 {
		return deployments
	}
	return started
}

// leaseNamespaces returns where an agent may be: the chosen namespace, or those of the Leases in statuses and that of config/default.
func (in *installation) leaseNamespaces() []string {
	if in.namespace != "" {
		return []string{in.namespace}
	}
	out := []string{agentNamespace}
	for i := range in.workloads.items {
		if lease := in.workloads.items[i].Status.Lease; lease != nil {
			out = append(out, lease.Namespace)
		}
	}
	return namespaceSet(out)
}

// agentNamespaces returns the namespaces with objects of an agent, and those of its Leases.
func (in *installation) agentNamespaces() []string {
	out := in.leaseNamespaces()
	for i := range in.deployments.items {
		out = append(out, in.deployments.items[i].Namespace)
	}
	for i := range in.pods.items {
		out = append(out, in.pods.items[i].Namespace)
	}
	return namespaceSet(out)
}

// account returns the ServiceAccount of the agent: that of its first Deployment, or that of config/default.
func (in *installation) account() serviceAccount {
	for i := range in.deployments.items {
		d := &in.deployments.items[i]
		return serviceAccount{d.Namespace, cmp.Or(d.Spec.Template.Spec.ServiceAccountName, "default")}
	}
	return serviceAccount{cmp.Or(in.namespace, agentNamespace), agentAccount}
}

// agentContainer returns the container of the agent in a Pod. Others may be sidecars.
func agentContainer(spec *corev1.PodSpec) *corev1.Container {
	for i := range spec.Containers {
		if _, ok := flagOf(&spec.Containers[i], "threeport-api-server"); ok || spec.Containers[i].Name == "agent" {
			return &spec.Containers[i]
		}
	}
	if len(spec.Containers) == 0 {
		return &corev1.Container{}
	}
	return &spec.Containers[0]
}

// flagOf returns the last value of a flag in the arguments of a container. A flag without a value is "true".
func flagOf(c *corev1.Container, name string) (value string, ok bool) {
	args := slices.Concat(c.Command, c.Args)
	for i, arg := range args {
		text, isFlag := strings.CutPrefix(strings.TrimPrefix(arg, "-"), "-")
		if key, assigned, hasValue := strings.Cut(text, "="); isFlag && key == name {
			value, ok = assigned, true
			switch {
			case hasValue:
			case i+1 < len(args) && !strings.HasPrefix(args[i+1], "-"):
				value = args[i+1]
			default:
				value = "true"
			}
		}
	}
	return value, ok
}

// elects reports whether the replicas of a Deployment elect a leader.
func elects(d *appsv1.Deployment) bool {
	value, _ := flagOf(agentContainer(&d.Spec.Template.Spec), "leader-elect")
	return value == "true"
}

// certificateFile is tls.crt of a Secret that a Deployment mounts.
type certificateFile struct {
	flag         string // of the agent, that names the file
	secret       string // NAMESPACE/NAME
	certificates []*x509.Certificate
	missing      string // the problem, if the Secret or its key is missing
	skipped      string // why it was not read
}

// certificateFlags are the flags of the agent with files of Secrets. A token is not read: the control plane alone knows its end.
var certificateFlags = []struct{ flag, preset string }{{"cert-dir", "/etc/threeport/cert"}, {"ca-file", "/etc/threeport/ca/tls.crt"}}

// readCertificates reads the certificates of the Secrets that the Deployments mount.
func (in *installation) readCertificates(ctx context.Context, client dynamic.Interface) {
	for i := range in.deployments.items {
		d := &in.deployments.items[i]
		c := agentContainer(&d.Spec.Template.Spec)
		auth, _ := flagOf(c, "auth-enabled")
		for _, known := range certificateFlags {
			path, _ := flagOf(c, known.flag)
			name := secretAt(&d.Spec.Template.Spec, c, cmp.Or(path, known.preset))
			if name == "" || known.flag == "cert-dir" && auth == "false" {
				continue
			}
			in.certificates = append(in.certificates, readCertificate(ctx, client, known.flag, d.Namespace, name))
		}
	}
}

// secretAt returns the Secret that a container mounts at a path or a folder above it; empty if there is none.
func secretAt(spec *corev1.PodSpec, c *corev1.Container, path string) string {
	for _, mount := range c.VolumeMounts {
		if path != mount.MountPath && !strings.HasPrefix(path, strings.TrimSuffix(mount.MountPath, "/")+"/") {
			continue
		}
		for _, v := range spec.Volumes {
			if v.Name == mount.Name && v.Secret != nil {
				return v.Secret.SecretName
			}
		}
	}
	return ""
}

// readCertificate reads tls.crt of a Secret.
func readCertificate(ctx context.Context, client dynamic.Interface, flag, namespace, name string) certificateFile {
	file := certificateFile{flag: flag, secret: namespace + "/" + name}
	u, err := client.Resource(secrets).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		file.missing = "the Secret does not exist"
		return file
	case apierrors.IsForbidden(err):
		file.skipped = "you lack get secrets" + inNamespace(namespace)
		return file
	case err != nil:
		file.skipped = err.Error()
		return file
	}
	// The answer has the private key too. It is dropped here, and neither decoded nor kept.
	encoded, _, _ := unstructured.NestedString(u.Object, "data", "tls.crt")
	file.certificates, err = parseCertificates(encoded)
	if err != nil {
		file.missing = err.Error()
	}
	return file
}

// parseCertificates parses the base64-encoded PEM text of a Secret.
func parseCertificates(encoded string) (out []*x509.Certificate, err error) {
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(text) == 0 {
		return nil, errors.New("the Secret has no tls.crt")
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("tls.crt has an invalid certificate: %w", err)
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, errors.New("tls.crt has no certificate")
	}
	return out, nil
}
