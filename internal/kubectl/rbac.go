package kubectl

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/kubectl/manifest"
)

// rbacOptions are the flags of rbac.
type rbacOptions struct {
	plugin     *plugin
	cluster    *connection
	files      []string
	secrets    bool
	namespaced bool
	roleName   string
	agent      serviceAccount
}

// The ServiceAccount in config/default. An overlay may have another one.
const (
	agentNamespace = "threeport-agent-system"
	agentAccount   = "threeport-agent"
)

// serviceAccount is the ServiceAccount of the agent.
type serviceAccount struct{ namespace, name string }

func (s serviceAccount) String() string { return s.namespace + "/" + s.name }

func (p *plugin) rbacCommand() *cobra.Command {
	o := &rbacOptions{plugin: p}
	cmd := &cobra.Command{
		Use:   "rbac [-f FILE] [NAME...]",
		Short: "Print the role that the agent needs for some workloads, and which permissions it lacks",
		Long: "Prints the permissions that the agent needs to watch and report some ThreeportWorkloads: those in files, the named ones, or " +
			"all in the cluster. They cover the listed kinds, Events, Pods, ReplicaSets and Jobs, and the kinds of the existing objects " +
			"between listed resources and Pods.\n\n" +
			"The output is a ClusterRole with the label " + aggregateLabel + "=true. Kubernetes adds its rules to the agent's " +
			"ClusterRole. With --namespaced, the output is a Role and a RoleBinding for each namespace. " +
			"Comments name the permissions that the agent lacks, as the API server decides (SubjectAccessReview), and the kinds that " +
			"the cluster does not serve yet. Secrets are left out without --secrets: the agent shows them as not checked." +
			connectionHelp + "\n\n" + rbacExitHelp,
		Example: `  # The permissions for all workloads of the cluster
  kubectl threeport rbac

  # Grant them
  kubectl threeport rbac | kubectl apply --server-side -f -

  # In the pipeline of a workload, before it is deployed
  kubectl threeport rbac -f workload.yaml >role.yaml || kubectl apply --server-side -f role.yaml

  # Only in the namespaces of one workload
  kubectl threeport rbac web --namespaced`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.cluster = newConnection(cmd)
	cmd.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "file with ThreeportWorkloads, - for standard input; may be repeated")
	cmd.Flags().BoolVar(&o.secrets, "secrets", false, "include listed Secrets")
	cmd.Flags().BoolVar(&o.namespaced, "namespaced", false, "print Roles and RoleBindings for namespaced kinds")
	cmd.Flags().StringVar(&o.roleName, "role-name", "",
		"name of the printed roles; the default is "+allRoleName+" for all workloads, and "+oneRoleName+"NAME for one")
	cmd.Flags().StringVar(&o.agent.namespace, "agent-namespace", agentNamespace, "namespace of the agent")
	cmd.Flags().StringVar(&o.agent.name, "agent-service-account", agentAccount, "ServiceAccount of the agent")
	cmd.ValidArgsFunction = o.cluster.completeWorkload
	return cmd
}

// Default names of the printed roles. The role of one workload must not replace that of all.
const (
	allRoleName = "threeport-agent-listed-kinds"
	oneRoleName = "threeport-agent-workload-"
)

const rbacExitHelp = `Exit codes:
  0  the agent has all permissions
  1  the agent lacks a permission
  2  the command line or the input is wrong, or a named ThreeportWorkload does not exist
  3  the cluster cannot be reached, or refuses the request`

func (o *rbacOptions) run(ctx context.Context, names []string) error {
	list, err := o.workloads(ctx, names)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(o.plugin.ErrOut, "There are no ThreeportWorkloads in the cluster.")
		return err
	}
	if err := o.complete(list, len(names)+len(o.files) > 0); err != nil {
		return err
	}
	c, err := newNeedCollector(o.cluster, o.secrets)
	if err != nil {
		return err
	}
	if err := c.collect(ctx, list); err != nil {
		return err
	}
	needs := c.sorted()
	reviewer, err := newReviewer(o.cluster, o.agent)
	if err != nil {
		return err
	}
	if err := reviewer.review(ctx, needs); err != nil {
		return err
	}
	if err := o.write(needs, slices.Concat(o.missingAccount(ctx), c.notes)); err != nil {
		return err
	}
	o.plugin.printNotes(c.takeIncomplete())
	if slices.ContainsFunc(needs, (*need).isMissing) {
		return exitWith(exitNotHealthy)
	}
	return nil
}

// complete sets the default name of the roles, and validates the names that are printed.
func (o *rbacOptions) complete(list []v1alpha1.ThreeportWorkload, chosen bool) error {
	switch {
	case o.roleName != "":
	case !chosen:
		o.roleName = allRoleName
	case len(list) == 1:
		o.roleName = oneRoleName + list[0].Name
	default:
		return usage("--role-name is required for %d chosen ThreeportWorkloads", len(list))
	}
	for flag, name := range map[string]string{
		"--role-name": o.roleName, "--agent-namespace": o.agent.namespace, "--agent-service-account": o.agent.name,
	} {
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			return usage("%s: %q is not a name: %s", flag, name, problems[0])
		}
	}
	return nil
}

// workloads returns the ThreeportWorkloads of the command line; without any, those of the cluster.
func (o *rbacOptions) workloads(ctx context.Context, names []string) ([]v1alpha1.ThreeportWorkload, error) {
	var out []v1alpha1.ThreeportWorkload
	for _, file := range o.files {
		found, err := o.readFile(ctx, file)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	for _, name := range names {
		found, err := o.cluster.workloads(ctx, name)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	if len(o.files)+len(names) > 0 {
		return out, nil
	}
	return o.cluster.workloads(ctx, "")
}

// readFile returns the ThreeportWorkloads of a file. Other objects are skipped.
func (o *rbacOptions) readFile(ctx context.Context, file string) ([]v1alpha1.ThreeportWorkload, error) {
	in, err := o.plugin.open(file)
	if err != nil {
		return nil, usage("-f: %w", err)
	}
	defer in.Close() //nolint:errcheck // the file is only read
	source := file
	if file == "-" {
		source = "standard input"
	}
	var out []v1alpha1.ThreeportWorkload
	for d := range manifest.Documents(ctx, source, in) {
		if d.Err != nil {
			return nil, usage("%s: %w", d.Place(), d.Err)
		}
		u := &unstructured.Unstructured{Object: d.Object}
		if u.GroupVersionKind() != v1alpha1.GroupVersion.WithKind("ThreeportWorkload") {
			continue
		}
		wl, err := decodeWorkload(u)
		if err != nil {
			return nil, usage("%s: %w", d.Place(), err)
		}
		out = append(out, wl)
	}
	if len(out) == 0 {
		return nil, usage("there are no ThreeportWorkloads in %s", source)
	}
	return out, nil
}

// missingAccount returns a note if the ServiceAccount of the agent does not exist.
func (o *rbacOptions) missingAccount(ctx context.Context) []string {
	client, err := o.cluster.metadata()
	if err != nil {
		return nil
	}
	_, err = client.Resource(resource("", "v1", "serviceaccounts")).Namespace(o.agent.namespace).Get(ctx, o.agent.name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return nil // another error says nothing about it
	}
	return []string{fmt.Sprintf("The ServiceAccount %s does not exist. Does the agent run as another one? --agent-namespace and "+
		"--agent-service-account name it.", o.agent)}
}

// write prints the roles, and comments about them.
func (o *rbacOptions) write(needs []*need, notes []string) error {
	var comments []string
	for _, n := range needs {
		if n.isMissing() {
			comments = append(comments, fmt.Sprintf("  %s %s: %s", strings.Join(n.missing, ", "), n.access, n.reason))
		}
	}
	heading := fmt.Sprintf("The ServiceAccount %s has all permissions for these ThreeportWorkloads.", o.agent)
	if len(comments) > 0 {
		heading = fmt.Sprintf("The ServiceAccount %s lacks:", o.agent)
	}
	for _, line := range slices.Concat([]string{heading}, comments, notes) {
		if _, err := fmt.Fprintln(o.plugin.Out, "#", oneLine(line)); err != nil {
			return err
		}
	}
	for _, object := range rolesFor(needs, o.namespaced, o.roleName, o.agent) {
		if err := writeYAML(o.plugin.Out, object); err != nil {
			return err
		}
	}
	return nil
}
