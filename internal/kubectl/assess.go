package kubectl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/threeport/threeport-agent/internal/health"
	"github.com/threeport/threeport-agent/internal/kubectl/manifest"
)

// assessOptions are the flags of assess.
type assessOptions struct {
	plugin    *plugin
	files     []string
	recursive bool
	now       string
	explain   bool
	rules     ruleFiles
	output    output
	accept    acceptance
}

func (p *plugin) assessCommand() *cobra.Command {
	o := &assessOptions{plugin: p}
	cmd := &cobra.Command{
		Use:   "assess -f FILE|DIR|-",
		Short: "Assess the objects in files, without a cluster",
		Long: "Assesses objects as the agent does, and prints a line for each, in their order. It does not use a cluster. " +
			"The status of an object includes its descendants in the input: a Deployment has its ReplicaSets and Pods, found by " +
			"owner references. Events of type Warning count for the objects that they are about.\n\n" +
			"Input is YAML with any number of documents, JSON, JSON lines, arrays, and List objects. An unreadable document is " +
			"reported on stderr with its file and number, and the other documents are assessed. An object without kind " +
			"or apiVersion is Unknown, and an error too. The same holds for a malformed ThreeportWorkload. An object and its owner may be in different files.\n\n" +
			"A folder means its files that end in .yaml, .yml, .json, .jsonl or .ndjson.\n\n" + exitHelp,
		Example: `  # What a cluster runs now
  kubectl get deployments,replicasets,pods -A -o yaml | kubectl threeport assess -f -

  # Files; the output is one JSON object a line
  kubectl threeport assess -f manifests/ -R -f more.yaml -o json

  # With your own rules, at a given time
  kubectl threeport assess -f backup.json --rules rules.yaml --now 2026-01-31T12:00:00Z

  # Objects that are not Healthy, in a script
  kubectl threeport assess -f dump.json -o json | jq -c 'select(.status != "Healthy")'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("unexpected argument %q: give files with -f", args[0])
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "file or folder with objects, - for standard input; may be repeated")
	cmd.Flags().BoolVarP(&o.recursive, "recursive", "R", false, "read folders recursively")
	cmd.Flags().StringVar(&o.now, "now", "",
		"time of the assessment, such as 2026-01-31T12:00:00Z; if not given, the present for standard input, and the newest time in a file")
	cmd.Flags().BoolVar(&o.explain, "explain", false, "show which rule or convention decided, and by which fields")
	o.rules.addFlag(cmd)
	o.output.addFlag(cmd, "json, one object a line", outputJSON)
	o.accept.addFlag(cmd)
	return cmd
}

func (o *assessOptions) run(ctx context.Context) error {
	assessor, err := o.assessor()
	if err != nil {
		return err
	}
	out := bufio.NewWriter(o.plugin.Out)
	assessor.emit = func(v verdictLine) error { return o.print(out, v) }
	assessor.fail = o.plugin.printError
	files, err := o.expand()
	if err != nil {
		return err
	}
	for _, name := range files {
		if err := o.assess(ctx, assessor, name); err != nil {
			return errors.Join(err, out.Flush())
		}
	}
	if err := errors.Join(assessor.finish(), out.Flush()); err != nil {
		return err
	}
	if note := assessor.clock.note(); note != "" {
		o.plugin.printError(errors.New(note))
	}
	switch {
	case assessor.errors > 0:
		return exitWith(exitUsage)
	case assessor.objects == 0:
		return usage("there are no objects in %s", strings.Join(o.files, ", "))
	}
	return exitWith(o.accept.code(assessor.worst(o.accept)))
}

// assessor returns an assessor for the flags.
func (o *assessOptions) assessor() (*assessor, error) {
	if err := o.output.validate(); err != nil {
		return nil, err
	}
	if err := o.accept.validate(); err != nil {
		return nil, err
	}
	if len(o.files) == 0 {
		return nil, usage("nothing to assess: give a file or folder with -f, or -f - for standard input")
	}
	clock := clock{present: o.plugin.now()}
	if o.now != "" {
		var err error
		if clock.fixed, err = time.Parse(time.RFC3339, o.now); err != nil {
			return nil, usage("--now is %q: give a time such as 2026-01-31T12:00:00Z", o.now)
		}
	}
	rules, err := o.rules.load()
	if err != nil {
		return nil, err
	}
	a := newAssessor(rules, clock)
	a.explain = o.explain
	return a, nil
}

// assess assesses the objects in a file. It prints and counts the errors of documents, and returns only other errors.
func (o *assessOptions) assess(ctx context.Context, a *assessor, name string) error {
	source := name
	if name == "-" {
		source = standardInput
	}
	in, err := o.plugin.open(name)
	if err != nil {
		a.reject(err)
		return nil
	}
	defer in.Close() //nolint:errcheck // the file is only read
	for d := range manifest.Documents(ctx, source, in) {
		if ctx.Err() != nil {
			return usage("%s: interrupted", d.Place())
		}
		if err := a.add(d); err != nil {
			return err
		}
	}
	return nil
}

// print writes a line for an object.
func (o *assessOptions) print(out io.Writer, v verdictLine) error {
	if o.output.value == outputJSON {
		return writeJSON(out, v)
	}
	cause := ""
	if v.Reason != "" {
		cause = ": " + strings.TrimSuffix(v.Reason+": "+v.Message, ": ")
	}
	name := subject(v.Kind, v.Namespace, v.Name)
	if name == "" {
		name = "an object"
	}
	p := o.plugin.palette
	_, err := fmt.Fprintf(out, "%s%s%s\n", p.paint(styleOf(v.Status), string(v.Status)),
		strings.Repeat(" ", len(health.Reconciling)+2-len(v.Status)), oneLine(name+cause))
	if err != nil || v.Explanation == nil {
		return err
	}
	lines := []string{"decided by " + v.Explanation.DecidedBy + ", as of " + v.AsOf}
	lines = append(lines, v.Explanation.Fields...)
	if v.Explanation.Derived != "" {
		lines = append(lines, v.Explanation.Derived)
	}
	for _, line := range lines {
		if _, err := fmt.Fprintf(out, "%s%s\n", strings.Repeat(" ", len(health.Reconciling)+2), oneLine(line)); err != nil {
			return err
		}
	}
	return nil
}

// extensions are the extensions of the files that are read from a folder.
var extensions = []string{".yaml", ".yml", ".json", ".jsonl", ".ndjson"}

// expand returns the files of the flags, those of a folder sorted by name.
func (o *assessOptions) expand() ([]string, error) {
	var files []string
	for _, name := range o.files {
		info, err := os.Stat(name)
		if name == "-" || err == nil && !info.IsDir() {
			files = append(files, name)
			continue
		}
		if err != nil {
			return nil, usage("-f: %w", err)
		}
		found, err := inFolder(name, o.recursive)
		if err != nil {
			return nil, usage("-f: %w", err)
		}
		if len(found) == 0 {
			return nil, usage("-f: there are no files that end in %s in the folder %s: use -R to read it recursively",
				strings.Join(extensions, ", "), name)
		}
		files = append(files, found...)
	}
	return files, nil
}

func inFolder(folder string, recursive bool) ([]string, error) {
	var files []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != folder && !recursive:
			return fs.SkipDir
		case !entry.IsDir() && strings.EqualFold(strings.TrimSuffix(entry.Name(), filepath.Ext(path)), "kustomization"):
			return fmt.Errorf("%s is a kustomization: give the objects that it builds with "+
				"`kubectl kustomize %s | kubectl threeport assess -f -`", path, filepath.Dir(path))
		case !entry.IsDir() && slices.Contains(extensions, strings.ToLower(filepath.Ext(path))):
			files = append(files, path)
		}
		return nil
	})
	return files, err
}
