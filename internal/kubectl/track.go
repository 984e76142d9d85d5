package kubectl

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/threeport/threeport-agent/api/v1alpha1"
)

// fieldManager owns the fields that track --apply writes.
const fieldManager = "kubectl-threeport"

// maxListed is the CRD's limit of resources in a ThreeportWorkload.
const maxListed = 2000

// trackOptions are the flags of track.
type trackOptions struct {
	plugin        *plugin
	cluster       *connection
	workloadType  string
	id            int64
	selector      string
	kinds         []string
	files         []string
	allNamespaces bool
	allowMissing  bool
	apply         bool
	force         bool
}

func (p *plugin) trackCommand() *cobra.Command {
	o := &trackOptions{plugin: p}
	cmd := &cobra.Command{
		Use:   "track NAME --type TYPE --id ID [-l SELECTOR] [-f FILE] [KIND/NAME[=ID]...]",
		Short: "Write a ThreeportWorkload for objects of the cluster",
		Long: "Writes a ThreeportWorkload that lists objects of the cluster, so that the agent watches and reports them. It lists named " +
			"objects, objects in files, and those that a label selector matches. It is written to stdout, or with --apply to the cluster.\n\n" +
			"KIND has any form that kubectl accepts: deployment, deploy, deployments.apps, Deployment.v1.apps. The suffix =ID is the ID of the object's " +
			"WorkloadResourceInstance in the control plane, for the reports of its operations. Without an ID the agent reports only its Events " +
			"and its part in the workload's status. KIND/NAME=ID also sets the ID of an object from a selector or a file.\n\n" +
			"A selector applies to Deployments, StatefulSets, DaemonSets, Jobs, CronJobs, Pods, Services, Ingresses, ConfigMaps, Secrets, " +
			"PersistentVolumeClaims, ServiceAccounts, Roles, RoleBindings, HorizontalPodAutoscalers, PodDisruptionBudgets and NetworkPolicies, " +
			"or to --kinds. Objects with a controller are left out: the agent finds them by their owner." + connectionHelp + "\n\n" +
			"Exit codes:\n  0  written\n  2  the command line or the input is wrong, or a named object does not exist\n  3  the cluster cannot be reached, or refuses the request",
		Example: `  # A Deployment and its configuration, with their IDs in the control plane
  kubectl threeport track web --type WorkloadInstance --id 877588458330128385 -n app-0 \
    deployment/web=877588462010892289 configmap/conf=877588461973536769

  # The objects of a Helm release, written to the cluster
  kubectl threeport track shop --type HelmWorkloadInstance --id 877588458330128386 -n shop \
    -l app.kubernetes.io/instance=shop --apply

  # The objects in manifests, and a selector for other kinds
  kubectl threeport track web --type WorkloadInstance --id 5 -f manifests.yaml
  kubectl threeport track db --type WorkloadInstance --id 6 -l app=db --kinds clusters.postgresql.cnpg.io,secrets`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("the name of the ThreeportWorkload is missing: see %s --help", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0], args[1:]) },
	}
	o.cluster = newConnection(cmd)
	cmd.Flags().StringVar(&o.workloadType, "type", "", "WorkloadInstance or HelmWorkloadInstance")
	cmd.Flags().Int64Var(&o.id, "id", 0, "ID of the workload instance in the control plane")
	cmd.Flags().StringVarP(&o.selector, "selector", "l", "", "label selector, such as app=web,tier!=test")
	cmd.Flags().StringSliceVar(&o.kinds, "kinds", nil, "kinds that the selector applies to, or all")
	cmd.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "file with manifests of objects, - for standard input; may be repeated")
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "apply the selector to all namespaces")
	cmd.Flags().BoolVar(&o.allowMissing, "allow-missing", false, "also list objects that do not exist yet")
	cmd.Flags().BoolVar(&o.apply, "apply", false, "write the ThreeportWorkload to the cluster by server-side apply")
	cmd.Flags().BoolVar(&o.force, "force-conflicts", false, "with --apply, take over fields of other managers")
	complete(cmd, "type", string(v1alpha1.WorkloadTypeInstance), string(v1alpha1.WorkloadTypeHelmInstance))
	cmd.ValidArgsFunction = o.completeObject
	return cmd
}

func (o *trackOptions) run(ctx context.Context, name string, args []string) error {
	if err := o.validate(name, args); err != nil {
		return err
	}
	c, err := newChooser(o)
	if err != nil {
		return err
	}
	if err := c.choose(ctx, args); err != nil {
		return err
	}
	listed, err := c.listed()
	if err != nil {
		return err
	}
	wl := &v1alpha1.ThreeportWorkload{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ThreeportWorkload"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.ThreeportWorkloadSpec{
			WorkloadType: v1alpha1.WorkloadType(o.workloadType), WorkloadInstanceID: o.id, WorkloadResourceInstances: listed,
		},
	}
	if !o.apply {
		return writeYAML(o.plugin.Out, wl)
	}
	return o.write(ctx, wl)
}

func (o *trackOptions) validate(name string, args []string) error {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return usage("%q cannot be the name of a ThreeportWorkload: %s", name, problems[0])
	}
	switch v1alpha1.WorkloadType(o.workloadType) {
	case v1alpha1.WorkloadTypeInstance, v1alpha1.WorkloadTypeHelmInstance:
	case "":
		return usage("--type is required: WorkloadInstance or HelmWorkloadInstance")
	default:
		return usage("--type: %q is not a workload type: use WorkloadInstance or HelmWorkloadInstance", o.workloadType)
	}
	if o.id < 1 {
		return usage("--id: give the ID of the %s in the control plane, a number from 1", o.workloadType)
	}
	if o.selector == "" && len(args) == 0 && len(o.files) == 0 {
		return usage("nothing to track: give objects as KIND/NAME, files with -f, or a label selector with -l")
	}
	if o.selector == "" && (len(o.kinds) > 0 || o.allNamespaces) {
		return usage("--kinds and --all-namespaces need a selector: give one with -l")
	}
	if _, err := labels.Parse(o.selector); err != nil {
		return usage("--selector: %w", err)
	}
	if o.force && !o.apply {
		return usage("--force-conflicts needs --apply")
	}
	return nil
}

// write applies the workload to the cluster.
func (o *trackOptions) write(ctx context.Context, wl *v1alpha1.ThreeportWorkload) error {
	client, err := o.cluster.dynamic()
	if err != nil {
		return err
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(wl)
	if err != nil {
		return err
	}
	_, err = client.Resource(workloads).Apply(ctx, wl.Name, &unstructured.Unstructured{Object: object},
		metav1.ApplyOptions{FieldManager: fieldManager, Force: o.force})
	switch {
	case apierrors.IsConflict(err):
		return usage("apply ThreeportWorkload %s: %w: --force-conflicts takes these fields over", wl.Name, err)
	case apierrors.IsNotFound(err):
		return workloadsFailure(err)
	case err != nil:
		return clusterFailure("apply ThreeportWorkload "+wl.Name, err)
	}
	_, err = fmt.Fprintf(o.plugin.Out, "ThreeportWorkload %s lists %s\n", wl.Name, many(len(wl.Spec.WorkloadResourceInstances), "object"))
	return err
}

// completeObject offers the names of ThreeportWorkloads for the first argument, and KIND/NAME for the others.
func (o *trackOptions) completeObject(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return o.cluster.completeWorkload(cmd, args, word)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	c, err := newChooser(o)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	kind, _, hasName := strings.Cut(word, "/")
	if hasName {
		return c.names(ctx, kind), cobra.ShellCompDirectiveNoFileComp
	}
	var kinds []string
	for _, r := range selectable {
		kinds = append(kinds, r.Resource+"/")
	}
	return kinds, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
