package kubectl

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/threeport/threeport-agent/api/v1alpha1"
)

// statusOptions are the flags of status.
type statusOptions struct {
	plugin  *plugin
	cluster *connection
	output  output
	accept  acceptance
	watch   bool
	name    string // of the only workload that is asked for
}

func (p *plugin) statusCommand() *cobra.Command {
	o := &statusOptions{plugin: p}
	cmd := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show how the workloads of the cluster stand, or why one does",
		Long: "Shows what the agent says of each ThreeportWorkload, the worst first: its status, how many of its listed resources " +
			"and of its pods are Healthy, whether the control plane has been told of everything, and the cause if it is not Healthy. " +
			"With a name, it shows that one with its conditions, the resources that are not Healthy, and what the control plane does not have." +
			connectionHelp + "\n\n" + exitHelp,
		Example: `  # All workloads, the worst first
  kubectl threeport status

  # One, with the cause of its status; all its resources
  kubectl threeport status web
  kubectl threeport status web -o wide

  # See it change; in a file or a pipe, a line for each change
  kubectl threeport status --watch

  # In a script: wait until it is Healthy
  until kubectl threeport status web >/dev/null; do sleep 2; done

  # The names of those that are Down
  kubectl threeport status -o json | jq -r 'select(.status == "Down").name'`,
		Args: cobra.MaximumNArgs(1),
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
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "go on until interrupted, and show what changes")
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
	list, err := o.cluster.workloads(ctx, o.name)
	if err != nil {
		return err
	}
	if o.watch {
		return o.follow(ctx)
	}
	all := statusesOf(list)
	if len(all) == 0 {
		_, err := fmt.Fprintln(o.plugin.ErrOut, "There are no ThreeportWorkloads in the cluster.")
		return err
	}
	if err := o.show(o.plugin.Out, all); err != nil {
		return err
	}
	return exitWith(o.code(all))
}

func statusesOf(list []v1alpha1.ThreeportWorkload) []workloadStatus {
	all := make([]workloadStatus, len(list))
	for i := range list {
		all[i] = statusOf(&list[i])
	}
	worstFirst(all)
	return all
}

// code is the exit code for how some workloads stand.
func (o *statusOptions) code(all []workloadStatus) int {
	code := exitHealthy
	for i := range all {
		code = max(code, o.accept.code(all[i].Status))
	}
	return code
}

// show writes all workloads, or the only one with its cause.
func (o *statusOptions) show(out io.Writer, all []workloadStatus) error {
	now := o.plugin.now()
	switch {
	case o.output.value == outputJSON || o.output.value == outputYAML:
		return o.encode(out, all)
	case o.name != "" && len(all) == 1:
		return all[0].writeDetails(out, o.plugin.palette, now, o.output, o.plugin.width(o.output))
	}
	return statusTable(all, now, o.output.value == outputWide).write(out, o.plugin.palette, "", o.plugin.width(o.output))
}

// encode writes workloads for programs. The resources are a part of one that was asked for only.
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
