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
	name    string // of the requested workload; empty for all
}

func (p *plugin) statusCommand() *cobra.Command {
	o := &statusOptions{plugin: p}
	cmd := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show the status of the workloads of the cluster, or the details of one",
		Long: "Shows the status that the agent reports for each ThreeportWorkload, the worst first: its health, how many of its listed " +
			"resources and pods are Healthy, whether all reports are delivered, and the cause if it is not Healthy. " +
			"With a name, it shows the details of one: its conditions, the resources that are not Healthy, and undelivered reports." +
			connectionHelp + "\n\n" + exitHelp,
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
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "show changes until interrupted")
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

// code returns the exit code for the status of some workloads.
func (o *statusOptions) code(all []workloadStatus) int {
	code := exitHealthy
	for i := range all {
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
	return statusTable(all, now, o.output.value == outputWide).write(out, o.plugin.palette, "", o.plugin.width(o.output))
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
