package kubectl

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
)

// The files of the bundle that are not named after a resource.
const (
	bundleFolder  = "threeport-bundle/"
	bundleText    = "report.txt"
	bundleJSON    = "report.json"
	bundleMissing = "missing.txt"
)

// maxBundleFile is the maximum size of a file with objects, in bytes: a thousand large ThreeportWorkloads are half a gigabyte.
const maxBundleFile = 16 << 20

// checkNewFile returns an error if a file exists, or cannot be created.
func checkNewFile(path string) error {
	switch _, err := os.Lstat(path); {
	case err == nil:
		return usage("--bundle: %s exists: give another name, or remove it", path)
	case !errors.Is(err, fs.ErrNotExist):
		return usage("--bundle: %w", err)
	}
	if folder, err := os.Stat(filepath.Dir(path)); err != nil || !folder.IsDir() {
		return usage("--bundle: %s is not a folder", filepath.Dir(path))
	}
	return nil
}

// writeBundle writes the support bundle, and says so on stderr.
func (o *doctorOptions) writeBundle(ctx context.Context, in *installation, r *doctorReport) error {
	client, err := o.cluster.dynamic()
	if err != nil {
		return err
	}
	logs, err := newPodLogs(o.cluster)
	if err != nil {
		return err
	}
	b := &bundle{now: in.now}
	err = writeNewFile(o.bundle, func(out io.Writer) error {
		return b.write(out, func() error {
			if err := b.addReport(r); err != nil {
				return err
			}
			if err := b.addObjects(ctx, client, in); err != nil {
				return err
			}
			if err := b.addLogs(ctx, logs, in.pods.items); err != nil {
				return err
			}
			return b.addMissing()
		})
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.plugin.ErrOut, "%s has the findings, the objects of the agent and its logs. Read it before you send it: redaction cannot recognize "+
		"every credential in a log.\n", o.bundle)
	return err
}

// writeNewFile writes a file that only its owner can read. The name appears when the file is complete; an existing file is not
// replaced.
func writeNewFile(path string, write func(io.Writer) error) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), ".threeport-bundle-*") // with the mode 0600
	if err != nil {
		return usage("--bundle: %w", err)
	}
	defer os.Remove(file.Name()) //nolint:errcheck // it is only a second name of the bundle, or incomplete
	err = write(file)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return usage("--bundle: write %s: %w", path, err)
	}
	switch err := os.Link(file.Name(), path); { // unlike a rename, it does not replace a file
	case errors.Is(err, fs.ErrExist):
		return usage("--bundle: %s exists: give another name, or remove it", path)
	case err != nil: // the file system has no hard links
		if err := checkNewFile(path); err != nil {
			return err
		}
		if err := os.Rename(file.Name(), path); err != nil {
			return usage("--bundle: %w", err)
		}
	}
	return nil
}

// bundle is an archive for the people who support the agent. All its texts are redacted.
type bundle struct {
	now     time.Time
	archive *tar.Writer
	missing []string // files that are not in the bundle, each with the reason
}

// write writes the archive. The function adds the files.
func (b *bundle) write(out io.Writer, add func() error) error {
	compressed := gzip.NewWriter(out)
	b.archive = tar.NewWriter(compressed)
	if err := add(); err != nil {
		return err
	}
	if err := b.archive.Close(); err != nil {
		return err
	}
	return compressed.Close()
}

// add adds a file.
func (b *bundle) add(name string, text []byte) error {
	header := &tar.Header{Name: bundleFolder + name, Mode: 0o600, Size: int64(len(text)), ModTime: b.now, Typeflag: tar.TypeReg}
	if err := b.archive.WriteHeader(header); err != nil {
		return err
	}
	_, err := b.archive.Write(text)
	return err
}

// addReport adds the findings as text and as JSON.
func (b *bundle) addReport(r *doctorReport) error {
	var text, encoded bytes.Buffer
	if err := r.writeText(&text, false, 0); err != nil {
		return err
	}
	if err := writeJSON(&encoded, r); err != nil {
		return err
	}
	if err := b.add(bundleText, text.Bytes()); err != nil {
		return err
	}
	return b.add(bundleJSON, encoded.Bytes())
}

// addMissing adds the list of missing files.
func (b *bundle) addMissing() error {
	if len(b.missing) == 0 {
		return nil
	}
	return b.add(bundleMissing, redactText([]byte(strings.Join(b.missing, "\n")+"\n")))
}

// addObjects adds a file for each kind of objects.
func (b *bundle) addObjects(ctx context.Context, client dynamic.Interface, in *installation) error {
	aboutWorkloads := reading[unstructured.Unstructured]{}
	aboutWorkloads.addList(ctx, client, listScope{events, metav1.NamespaceDefault},
		metav1.ListOptions{FieldSelector: "involvedObject.kind=ThreeportWorkload"}, inNamespace(metav1.NamespaceDefault))
	roles := readRoles(ctx, client, in)
	for _, file := range []struct {
		name    string
		objects []unstructured.Unstructured
		skipped string
	}{
		{"crd.yaml", in.crd.objects, in.crd.skipped},
		{"deployments.yaml", in.deployments.objects, in.deployments.skipped},
		{"pods.yaml", in.pods.objects, in.pods.skipped},
		{"leases.yaml", in.leases.objects, in.leases.skipped},
		{"events.yaml", in.events.objects, in.events.skipped},
		{"workload-events.yaml", aboutWorkloads.objects, aboutWorkloads.skipped},
		{"threeportworkloads.yaml", in.workloads.objects, in.workloads.skipped},
		{"roles.yaml", roles.objects, roles.skipped},
		{"admission-policies.yaml", in.policies.objects, in.policies.skipped},
		{"admission-bindings.yaml", in.bindings.objects, in.bindings.skipped},
	} {
		if file.skipped != "" {
			b.missing = append(b.missing, file.name+": "+file.skipped)
		}
		if err := b.addYAML(file.name, file.objects); err != nil {
			return err
		}
	}
	return nil
}

// addYAML adds a file with redacted objects. Objects beyond the maximum size are left out.
func (b *bundle) addYAML(name string, objects []unstructured.Unstructured) error {
	var text bytes.Buffer
	for i := range objects {
		before := text.Len()
		if err := writeYAML(&text, redactObject(&objects[i])); err != nil {
			return err
		}
		if text.Len() > maxBundleFile {
			text.Truncate(before)
			b.missing = append(b.missing, fmt.Sprintf("%s: %s beyond %d MiB", name, many(len(objects)-i, "object"), maxBundleFile>>20))
			break
		}
	}
	if text.Len() == 0 {
		return nil
	}
	return b.add(name, redactText(text.Bytes()))
}

// The resources of RBAC.
var (
	clusterRoles        = resource("rbac.authorization.k8s.io", "v1", "clusterroles")
	clusterRoleBindings = resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings")
	roles               = resource("rbac.authorization.k8s.io", "v1", "roles")
	roleBindings        = resource("rbac.authorization.k8s.io", "v1", "rolebindings")
)

// readRoles reads the bindings of the agent's ServiceAccount, the ClusterRoles that they name or that are aggregated, and all Roles of
// its namespace.
func readRoles(ctx context.Context, client dynamic.Interface, in *installation) (out reading[unstructured.Unstructured]) {
	agent := in.account()
	bound := map[string]bool{}
	keepBound := func(scope listScope, where string) {
		var all reading[unstructured.Unstructured]
		all.addList(ctx, client, scope, metav1.ListOptions{}, where)
		for i := range all.objects {
			if role, ok := bindingOf(&all.objects[i], agent); ok {
				bound[role] = true
				out.add(all.objects[i])
			}
		}
		out.skipped = joinReasons(out.skipped, all.skipped)
	}
	keepBound(listScope{GroupVersionResource: clusterRoleBindings}, "")
	keepBound(listScope{roleBindings, agent.namespace}, inNamespace(agent.namespace))
	out.addList(ctx, client, listScope{roles, agent.namespace}, metav1.ListOptions{}, inNamespace(agent.namespace))
	var all reading[unstructured.Unstructured]
	all.addList(ctx, client, listScope{GroupVersionResource: clusterRoles}, metav1.ListOptions{}, "")
	for i := range all.objects {
		if u := &all.objects[i]; bound[u.GetName()] || u.GetLabels()[aggregateLabel] == "true" {
			out.add(*u)
		}
	}
	out.skipped = joinReasons(out.skipped, all.skipped)
	return out
}

// bindingOf returns the role of a binding, and whether its subjects include a ServiceAccount.
func bindingOf(u *unstructured.Unstructured, agent serviceAccount) (role string, ok bool) {
	var binding rbacv1.ClusterRoleBinding // a RoleBinding has the same fields
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &binding); err != nil {
		return "", false
	}
	for _, s := range binding.Subjects {
		if s.Kind == rbacv1.ServiceAccountKind && s.Name == agent.name && s.Namespace == agent.namespace {
			return binding.RoleRef.Name, true
		}
	}
	return "", false
}
