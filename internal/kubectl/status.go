package kubectl

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/health"
	"github.com/threeport/threeport-agent/internal/kubectl/wrap"
)

// statusOptions are the flags of status.
type statusOptions struct {
	plugin  *plugin
	cluster *connection
	output  output
	accept  acceptance
	watch   bool
	fresh   bool
	name    string // of the requested workload; empty for all
}

func (p *plugin) statusCommand() *cobra.Command {
	o := &statusOptions{plugin: p}
	cmd := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show the status of the workloads of the cluster, or the details of one",
		Long: "Shows the status that the agent reports for each ThreeportWorkload, the worst first: its health, how many of its listed " +
			"resources (READY) and of its pods (PODS) are Healthy, whether all reports are delivered, and the cause if it is not Healthy. " +
			"With a name, it shows the details of one: its conditions, the resources that are not Healthy, and undelivered reports.\n\n" +
			"If the agent does not report, the status is Unknown. The cause has the last status, and a deletion that waits for the agent. " +
			"With --fresh, the plugin assesses the objects in the cluster itself, as tree does." +
			connectionHelp + "\n\n" + statusExitHelp,
		Example: `  # All workloads, the worst first
  kubectl threeport status

  # One with the cause of its status, and with all its resources
  kubectl threeport status web
  kubectl threeport status web -o wide

  # Follow changes; in a file or a pipe, a line for each change
  kubectl threeport status --watch

  # In a script: wait until it is Healthy
  until kubectl threeport status web >/dev/null; do sleep 2; done

  # The names of those that are Down
  kubectl threeport status -o json | jq -r 'select(.status == "Down").name'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("%d names: give one, or none for all workloads; see %s --help", len(args), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.name = args[0]
			}
			return o.run(cmd.Context())
		},
	}
	o.cluster = newConnection(cmd)
	o.output.addFlag(cmd, "wide, json (one object a line) or yaml", outputWide, outputJSON, outputYAML)
	o.accept.addFlag(cmd)
	cmd.Flags().Lookup("namespace").Usage = "show only the workloads that list an object in this namespace"
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "show changes until interrupted")
	cmd.Flags().BoolVar(&o.fresh, "fresh", false, "assess the objects in the cluster now, without the agent")
	cmd.ValidArgsFunction = o.cluster.completeWorkload
	return cmd
}

func (o *statusOptions) run(ctx context.Context) error {
	if err := o.output.validate(); err != nil {
		return err
	}
	if err := o.accept.validate(); err != nil {
		return err
	}
	if o.fresh && o.watch {
		return usage("--fresh with --watch: use one of them, since only the agent follows all objects")
	}
	if o.name != "" && *o.cluster.flags.Namespace != "" {
		return usage("-n selects among all workloads: leave it out, since ThreeportWorkload %s is cluster-scoped", o.name)
	}
	list, err := o.cluster.workloads(ctx, o.name)
	if err != nil {
		return err
	}
	if o.watch {
		return o.follow(ctx)
	}
	all, err := o.statuses(ctx, list)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return o.showNone(ctx, list)
	}
	if err := o.show(o.plugin.Out, all); err != nil {
		return err
	}
	return exitWith(o.code(all))
}

// statuses returns the status of the workloads that -n selects, the worst first.
func (o *statusOptions) statuses(ctx context.Context, list []v1alpha1.ThreeportWorkload) ([]workloadStatus, error) {
	namespace := *o.cluster.flags.Namespace
	if o.fresh {
		if err := o.warnOfSilence(ctx, list); err != nil {
			return nil, err
		}
		return o.assessed(ctx, slices.DeleteFunc(slices.Clone(list), func(wl v1alpha1.ThreeportWorkload) bool {
			return namespace != "" && !slices.Contains(namespacesOf(&wl), namespace)
		}))
	}
	all, err := o.reported(ctx, list) // all statuses show whether the agent is silent
	return slices.DeleteFunc(all, func(s workloadStatus) bool {
		return namespace != "" && !slices.Contains(s.Namespaces, namespace)
	}), err
}

// reported returns the statuses that the agent reported.
func (o *statusOptions) reported(ctx context.Context, list []v1alpha1.ThreeportWorkload) ([]workloadStatus, error) {
	if o.name != "" && len(list) == 1 && isUnseen(&list[0]) { // the statuses of others show whether the agent reports
		var err error
		if list, err = o.cluster.workloads(ctx, ""); err != nil {
			return nil, err
		}
	}
	leases, err := o.cluster.leases(ctx, list)
	if err != nil {
		return nil, err
	}
	all := statusesOf(list, leases, o.cluster.clock.at(o.plugin.now()))
	return slices.DeleteFunc(all, func(s workloadStatus) bool { return o.name != "" && s.Name != o.name }), nil
}

// statusesOf returns the reported statuses, the worst first.
func statusesOf(list []v1alpha1.ThreeportWorkload, leases leases, now time.Time) []workloadStatus {
	last := lastConfirmation(list)
	whys := make([]outdated, len(list))
	var silent outdated // on all workloads
	for i := range list {
		if whys[i] = leases.outdated(&list[i], last, now); whys[i].silent {
			silent = whys[i]
		}
	}
	var all []workloadStatus
	for i := range list {
		s := statusOf(&list[i])
		if isUnseen(&list[i]) {
			whys[i] = silent
		}
		if !whys[i].since.IsZero() {
			s.markOutdated(whys[i])
		}
		all = append(all, s)
	}
	worstFirst(all)
	return all
}

// isUnseen reports whether no agent has written a status.
func isUnseen(wl *v1alpha1.ThreeportWorkload) bool {
	return wl.Status.Health == "" && len(wl.Status.Conditions) == 0
}

// warnOfSilence says if the agent is silent: the control plane does not get the new verdicts.
func (o *statusOptions) warnOfSilence(ctx context.Context, list []v1alpha1.ThreeportWorkload) error {
	all, err := o.reported(ctx, list)
	if err != nil {
		return err
	}
	if sentence, _ := silence(all, o.plugin.now()); sentence != "" {
		_, err = fmt.Fprintln(o.plugin.ErrOut, sentence, "The plugin assesses the objects now.")
	}
	return err
}

// assessed returns the statuses by the objects in the cluster, and prints which objects may be missing.
func (o *statusOptions) assessed(ctx context.Context, list []v1alpha1.ThreeportWorkload) ([]workloadStatus, error) {
	rules, err := ruleFiles{}.load()
	if err != nil {
		return nil, err
	}
	reader, err := newObjectReader(o.cluster, false)
	if err != nil {
		return nil, err
	}
	var all []workloadStatus
	var incomplete []string
	for i := range list {
		have, err := reader.readWorkload(ctx, &list[i])
		if err != nil {
			return nil, err
		}
		s := statusOf(&list[i])
		s.setAssessment(buildTree(&list[i], have, health.Context{Now: o.plugin.now(), Rules: rules}))
		all = append(all, s)
		incomplete = append(incomplete, have.incomplete...)
	}
	o.plugin.printNotes(sortedSet(incomplete))
	worstFirst(all)
	return all, nil
}

// setAssessment replaces the verdict and the counts by those of a tree.
func (s *workloadStatus) setAssessment(root *treeNode) {
	s.Status, s.Reason, s.Message, s.Since = root.Status, root.Reason, root.Message, root.Since
	s.CauseSince, s.NotHealthySince, s.ConfirmedAt = nil, nil, nil
	s.Ready, s.Pods, s.Conditions = &v1alpha1.Count{}, new(root.podCount()), nil
	s.Delivery, s.Resources, s.Omitted = v1alpha1.DeliveryStatus{}, nil, 0
	namespaces := []string{}
	root.each(func(n *treeNode) {
		if n.State == "" {
			return
		}
		namespaces = append(namespaces, n.Namespace)
		s.Resources = append(s.Resources, n.resourceStatus())
		s.Ready.Total++
		if n.Status == health.Healthy {
			s.Ready.Healthy++
		}
	})
	s.Namespaces = namespaceSet(namespaces)
}

// resourceStatus returns the status of a listed resource, as the agent reports it.
func (n *treeNode) resourceStatus() v1alpha1.ResourceStatus {
	kind := schema.FromAPIVersionAndKind(n.APIVersion, n.Kind)
	out := v1alpha1.ResourceStatus{
		Group: kind.Group, Version: kind.Version, Kind: n.Kind, Namespace: n.Namespace, Name: n.Name, State: n.State,
		Health: string(n.Status), Reason: n.Reason, Message: n.Message,
	}
	if n.Status != health.Healthy {
		out.HealthSince = n.Since
	}
	if pods := n.podCount(); pods.Total > 0 {
		out.Pods = &pods
	}
	return out
}

// podCount counts the Pods below an object, without those that have completed.
func (n *treeNode) podCount() (pods v1alpha1.Count) {
	n.each(func(below *treeNode) {
		if below.Kind != "Pod" || (health.Verdict{Status: below.Status, Reason: below.Reason}).HasCompleted() {
			return
		}
		pods.Total++
		if below.Status == health.Healthy {
			pods.Healthy++
		}
	})
	return pods
}

// showNone says that none of the workloads is to be shown. A silent agent is named, with its exit code, because it may not have reported
// the namespaces of a workload. A namespace that does not exist is an error.
func (o *statusOptions) showNone(ctx context.Context, list []v1alpha1.ThreeportWorkload) error {
	if err := o.cluster.checkNamespace(ctx, *o.cluster.flags.Namespace, list); err != nil {
		return err
	}
	text, code := o.noWorkloads(), exitHealthy
	if !o.fresh {
		all, err := o.reported(ctx, list)
		if err != nil {
			return err
		}
		if sentence, _ := silence(all, o.plugin.now()); sentence != "" {
			text, code = sentence+freshHint+"\n"+text, exitOutdated
		}
	}
	if _, err := fmt.Fprintln(o.plugin.ErrOut, text); err != nil {
		return err
	}
	return exitWith(code)
}

// noWorkloads says that there are no workloads to show.
func (o *statusOptions) noWorkloads() string {
	if namespace := *o.cluster.flags.Namespace; namespace != "" {
		return fmt.Sprintf("No ThreeportWorkload lists an object in the namespace %s.", namespace)
	}
	return "There are no ThreeportWorkloads in the cluster."
}

// code returns the exit code for the status of some workloads.
func (o *statusOptions) code(all []workloadStatus) int {
	code := exitHealthy
	for i := range all {
		if all[i].LastStatus != "" {
			return exitOutdated
		}
		code = max(code, o.accept.code(all[i].Status))
	}
	return code
}

// show writes the table of all workloads, or the details of the requested one.
func (o *statusOptions) show(out io.Writer, all []workloadStatus) error {
	now := o.plugin.now()
	switch {
	case o.output.value == outputJSON || o.output.value == outputYAML:
		return o.encode(out, all)
	case o.name != "" && len(all) == 1:
		return all[0].writeDetails(out, o.plugin.palette, now, o.output, o.plugin.width(o.output))
	}
	width := o.plugin.width(o.output)
	sentence, all := silence(all, now)
	if sentence != "" {
		text := strings.Join(wrap.Lines(sentence+freshHint, width), "\n")
		if _, err := fmt.Fprintln(out, o.plugin.palette.paint(yellow, text)+"\n"); err != nil {
			return err
		}
	}
	return statusTable(all, now, o.output.value == outputWide).write(out, o.plugin.palette, "", width)
}

// encode writes workloads as JSON or YAML. Only the requested one has its resources.
func (o *statusOptions) encode(out io.Writer, all []workloadStatus) error {
	for _, s := range all {
		if o.name == "" {
			s.Resources, s.Omitted = nil, 0
		}
		write := writeJSON
		if o.output.value == outputYAML {
			write = writeYAML
		}
		if err := write(out, s); err != nil {
			return err
		}
	}
	return nil
}
