package kubectl

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/threeport/threeport-agent/internal/kubectl/wrap"
)

// doctorOptions are the flags of doctor.
type doctorOptions struct {
	plugin  *plugin
	cluster *connection
	output  output
	bundle  string // the file of the support bundle; empty for none
}

// doctorTimeout is the timeout of a request without --request-timeout: an API server that hangs must not keep the report back.
const doctorTimeout = "1m"

func (p *plugin) doctorCommand() *cobra.Command {
	o := &doctorOptions{plugin: p}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the installation of the agent, and say what to do",
		Long: "Checks through the Kubernetes API whether the agent is installed, runs, has its permissions, and delivers its reports. " +
			"Each finding has a severity, and a problem also what to do. The worst findings are first.\n\n" +
			"A check of objects that the user may not read is \"not checked\", with the missing permission. Such a check is no error. " +
			"Without -n, the agent is searched in all namespaces.\n\n" +
			"--bundle writes the findings, the objects of the agent and its logs to an archive. " +
			"It has no Secrets; values of environment variables and of annotations are redacted." +
			connectionHelp + "\n\n" + doctorExitHelp,
		Example: `  # Is the agent well?
  kubectl threeport doctor

  # Only what is wrong, for a program
  kubectl threeport doctor -o json | jq '.findings[] | select(.severity == "error")'

  # Collect everything for an issue
  kubectl threeport doctor --bundle threeport.tar.gz`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.cluster = newConnection(cmd)
	cmd.Flags().Lookup("namespace").Usage = "namespace of the agent; the default is to search all"
	cmd.Flags().StringVar(&o.bundle, "bundle", "", "write a support bundle to this new file, such as threeport.tar.gz")
	o.output.addFlag(cmd, "json or yaml", outputJSON, outputYAML)
	return cmd
}

const doctorExitHelp = `Exit codes:
  0  no finding is an error
  1  a finding is an error
  2  the command line is wrong, or the bundle cannot be written
  3  the cluster cannot be reached, or refuses the user`

func (o *doctorOptions) run(ctx context.Context) error {
	if err := o.output.validate(); err != nil {
		return err
	}
	if o.bundle != "" {
		if err := checkNewFile(o.bundle); err != nil {
			return err
		}
	}
	if *o.cluster.flags.Timeout == "0" {
		*o.cluster.flags.Timeout = doctorTimeout
	}
	in, err := readInstallation(ctx, o.cluster, o.plugin.version)
	if err != nil {
		return err
	}
	in.now = o.cluster.clock.at(o.plugin.now())
	r := diagnose(in)
	if err := o.write(o.plugin.Out, r); err != nil {
		return err
	}
	if o.bundle != "" {
		if err := o.writeBundle(ctx, in, r); err != nil {
			return err
		}
	}
	if r.count(severityError) > 0 {
		return exitWith(exitNotHealthy)
	}
	return nil
}

func (o *doctorOptions) write(out io.Writer, r *doctorReport) error {
	switch o.output.value {
	case outputJSON:
		return writeJSON(out, r)
	case outputYAML:
		return writeYAML(out, r)
	}
	return r.writeText(out, o.plugin.palette, o.plugin.width(o.output))
}

// severity is the result of a check in a word.
type severity string

const (
	severityOK         severity = "ok"
	severityNotChecked severity = "not checked"
	severityWarning    severity = "warning"
	severityError      severity = "error"
)

// severities are sorted from worst to best, with their styles.
var severities = []struct {
	severity severity
	style    style
}{{severityError, red}, {severityWarning, yellow}, {severityNotChecked, purple}, {severityOK, green}}

// badness returns the position in severities.
func (s severity) badness() int {
	for i, known := range severities {
		if known.severity == s {
			return i
		}
	}
	return len(severities)
}

// finding is the result of a check.
type finding struct {
	Check    string   `json:"check"`
	Severity severity `json:"severity"`
	Message  string   `json:"message"`
	// Action says what to do; empty if there is nothing to do.
	Action string `json:"action,omitempty"`
	// Link is a section of the documents.
	Link string `json:"link,omitempty"`
}

// okay returns a finding without a problem.
func okay(format string, args ...any) finding {
	return finding{Severity: severityOK, Message: fmt.Sprintf(format, args...)}
}

// notChecked returns a finding about objects that were not read.
func notChecked(why string) finding { return finding{Severity: severityNotChecked, Message: why} }

// doctorReport has all findings, as -o json prints it.
type doctorReport struct {
	Time       time.Time `json:"time"` // of the API server
	Plugin     string    `json:"pluginVersion"`
	Agent      string    `json:"agentVersion,omitempty"` // empty if it is not known
	Kubernetes string    `json:"kubernetesVersion"`
	Findings   []finding `json:"findings"`
}

// diagnose runs all checks. The worst findings are first.
func diagnose(in *installation) *doctorReport {
	r := &doctorReport{
		Time: in.now.UTC().Truncate(time.Second), Plugin: in.plugin, Agent: in.agentVersion(), Kubernetes: in.kubernetes, Findings: []finding{},
	}
	for _, c := range doctorChecks {
		for _, f := range c.run(in) {
			f.Check, f.Message, f.Action = c.name, oneLine(string(redactText([]byte(f.Message)))), oneLine(f.Action)
			r.Findings = append(r.Findings, f)
		}
	}
	slices.SortStableFunc(r.Findings, func(a, b finding) int { return cmp.Compare(a.Severity.badness(), b.Severity.badness()) })
	return r
}

func (r *doctorReport) count(s severity) (n int) {
	for i := range r.Findings {
		if r.Findings[i].Severity == s {
			n++
		}
	}
	return n
}

// writeText writes the findings, each with its action below it, and their numbers.
func (r *doctorReport) writeText(out io.Writer, p palette, width int) error {
	const indent = "             " // longer than each status
	var text strings.Builder
	write := func(first, rest string, s style) {
		for i, line := range wrap.Lines(rest, max(width-len(indent), min(width, 1))) {
			if i > 0 {
				first = ""
			}
			text.WriteString(p.paint(s, first) + indent[len(first):] + line + "\n")
		}
	}
	for _, f := range r.Findings {
		write(string(f.Severity), f.Check+": "+f.Message, severities[f.Severity.badness()].style)
		write("", f.Action, plain)
		if f.Link != "" {
			write("", "See "+f.Link, plain)
		}
	}
	var counts []string
	for _, known := range severities {
		n := r.count(known.severity)
		switch {
		case n == 0:
		case known.severity == severityError, known.severity == severityWarning:
			counts = append(counts, many(n, string(known.severity)))
		default:
			counts = append(counts, fmt.Sprintf("%d %s", n, known.severity))
		}
	}
	fmt.Fprintf(&text, "\n%s. Plugin %s, agent %s, Kubernetes %s.\n",
		strings.Join(counts, ", "), oneLine(r.Plugin), oneLine(cmp.Or(r.Agent, "of unknown version")), oneLine(r.Kubernetes))
	_, err := io.WriteString(out, text.String())
	return err
}
