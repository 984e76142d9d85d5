package kubectl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/threeport/threeport-agent/internal/health"
)

// plugin has the streams and settings that the commands share.
type plugin struct {
	genericiooptions.IOStreams
	version string
	now     func() time.Time

	color   string
	palette palette
}

// Run runs the plugin and returns its exit code. The command version prints the given version.
func Run(ctx context.Context, args []string, streams genericiooptions.IOStreams, version string) int {
	p := &plugin{IOStreams: streams, version: version, now: time.Now}
	return p.run(ctx, args)
}

func (p *plugin) run(ctx context.Context, args []string) int {
	root := p.command() //nolint:contextcheck // the commands have theirs from ExecuteContext
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if errors.Is(err, syscall.EPIPE) { // a reader such as head(1) has closed the pipe
		return exitHealthy
	}
	if err != nil && err.Error() != "" {
		p.printError(err)
	}
	return exitCode(err)
}

// printError prints an error, with one line for each joined error.
func (p *plugin) printError(err error) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		_, _ = fmt.Fprintln(p.ErrOut, "kubectl-threeport:", oneLine(line))
	}
}

// printNotes prints notes, each as one line.
func (p *plugin) printNotes(notes []string) {
	for _, note := range notes {
		_, _ = fmt.Fprintln(p.ErrOut, "kubectl-threeport:", oneLine(note))
	}
}

// command returns the root command.
func (p *plugin) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-threeport",
		Short: "Show whether the workloads of a control plane run and, if not, why",
		Long: "kubectl threeport shows whether the workloads that a control plane has deployed to a cluster run and, if not, why.\n\n" +
			statusExitHelp,
		Example: `  # The workloads of this cluster, the worst first
  kubectl threeport status

  # Why one does not run
  kubectl threeport tree web

  # Assess objects without a cluster
  kubectl get deployments,pods -o yaml | kubectl threeport assess -f -`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl threeport"},
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			var err error
			p.palette, err = newPalette(p.color, p.Out)
			return err
		},
		Args: knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: suggestionsDistance,
	}
	root.SetIn(p.In)
	root.SetOut(p.Out)
	root.SetErr(p.ErrOut)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
			var names []string
			cmd.Flags().VisitAll(func(flag *pflag.Flag) { names = append(names, "--"+flag.Name) })
			if similar := similarTo("--"+unknown.GetSpecifiedName(), names); unknown.GetSpecifiedShortnames() == "" && similar != "" {
				return usage("%w: did you mean %s?", err, similar)
			}
		}
		if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok && invalid.GetFlag().Value.Type() == "int64" {
			return usage("--%s: %q is not a whole number: see %s --help", invalid.GetFlag().Name, invalid.GetValue(), cmd.CommandPath())
		}
		return usage("%w: see %s --help", err, cmd.CommandPath())
	})
	addColorFlag(root, &p.color)
	root.AddCommand(p.statusCommand(), p.treeCommand(), p.assessCommand(), p.trackCommand(), p.rbacCommand(), p.doctorCommand(),
		p.versionCommand())
	root.InitDefaultCompletionCmd()
	return root
}

// suggestionsDistance is the maximum Levenshtein distance of a name that an error suggests.
const suggestionsDistance = 2

// knownCommand refuses the name of a command that does not exist, and suggests a similar one.
func knownCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if similar := root.SuggestionsFor(args[0]); len(similar) > 0 {
		return usage("unknown command %q: did you mean %s?", args[0], strings.Join(similar, " or "))
	}
	return usage("unknown command %q: see %s --help", args[0], root.CommandPath())
}

func (p *plugin) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "version",
		Short:             "Print the version",
		Example:           "  kubectl threeport version",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(p.Out, "kubectl-threeport", p.version)
			return err
		},
	}
}

// statuses has the statuses from worst to best.
var statuses = []health.Status{health.Down, health.Unhealthy, health.Reconciling, health.Unknown, health.Healthy}

// rank returns the position of a status from worst to best. A status that is not known counts as Unknown.
func rank(status health.Status) int {
	if at := slices.Index(statuses, status); at >= 0 {
		return at
	}
	return slices.Index(statuses, health.Unknown)
}

// acceptance is the value of --accept: statuses that count as Healthy for the exit code.
type acceptance []string

func (a *acceptance) addFlag(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar((*[]string)(a), "accept", nil,
		"statuses that count as Healthy for the exit code, such as Reconciling,Unknown")
	complete(cmd, "accept", "Reconciling", "Unhealthy", "Down", "Unknown")
}

func (a acceptance) validate() error {
	for _, word := range a {
		if !slices.Contains(statuses, health.Status(word)) {
			return usage("--accept: %q is not a status: use Reconciling, Unhealthy, Down or Unknown", word)
		}
	}
	return nil
}

// code returns the exit code for a status.
func (a acceptance) code(status health.Status) int {
	if status == health.Healthy || slices.Contains(a, string(status)) {
		return exitHealthy
	}
	return exitNotHealthy
}

// output is the value of --output.
type output struct {
	value string
	known []string
}

// The values of --output.
const (
	outputText = ""
	outputWide = "wide"
	outputJSON = "json"
	outputYAML = "yaml"
)

func (o *output) addFlag(cmd *cobra.Command, what string, known ...string) {
	o.known = known
	cmd.Flags().StringVarP(&o.value, "output", "o", "", "format: "+what)
	complete(cmd, "output", known...)
}

func (o *output) validate() error {
	if o.value != outputText && !slices.Contains(o.known, o.value) {
		return usage("--output: %q is not a format: use %s", o.value, strings.Join(o.known, ", "))
	}
	return nil
}

// complete offers values for a flag.
func complete(cmd *cobra.Command, flag string, values ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag does not exist, which is a programming error
	}
}

// width returns the maximum length of a line; 0 for no limit.
func (p *plugin) width(o output) int {
	if o.value == outputWide {
		return 0
	}
	width, _ := terminal(p.Out)
	return width
}

// open opens a file, or standard input for "-".
func (p *plugin) open(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(p.In), nil
	}
	return os.Open(name) //nolint:gosec // the user chooses the file
}
