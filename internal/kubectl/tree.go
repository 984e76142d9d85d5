package kubectl

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/health"
)

// treeOptions are the flags of tree.
type treeOptions struct {
	plugin   *plugin
	cluster  *connection
	output   output
	accept   acceptance
	rules    ruleFiles
	all      bool
	allKinds bool
}

func (p *plugin) treeCommand() *cobra.Command {
	o := &treeOptions{plugin: p}
	cmd := &cobra.Command{
		Use:   "tree NAME",
		Short: "Show what a workload consists of, each object with its health",
		Long: "Reads the objects that a ThreeportWorkload lists and what descends from them by owner references or belongs to it by its " +
			"label, and judges all of them as they are now; it does not need the agent for that. It looks for Deployments, StatefulSets, " +
			"DaemonSets, ReplicaSets, ReplicationControllers, Jobs, CronJobs, Pods, Services, EndpointSlices, Ingresses and " +
			"PersistentVolumeClaims in the namespaces of the listed objects, and if there are custom resources among these for all kinds of " +
			"their API groups; --all-kinds looks for everything that the cluster serves.\n\n" +
			"An object has its status joined with that of what descends from it, and what it says of itself beside it. One that does not " +
			"exist or may not be read is shown as such. Of objects that are alike, the first few are shown, unless --all is given." +
			connectionHelp + "\n\n" + exitHelp,
		Example: `  # What web consists of, and what is wrong with it
  kubectl threeport tree web

  # Everything, whatever kinds of custom controllers there are
  kubectl threeport tree web --all --all-kinds

  # For a program
  kubectl threeport tree web -o json | jq '.children[] | select(.status != "Healthy")'`,
		Args: exactlyOne("the name of a ThreeportWorkload"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.cluster = newConnection(cmd)
	cmd.Flags().BoolVar(&o.all, "all", false, "show all objects, however many are alike, and ReplicaSets of earlier revisions")
	cmd.Flags().BoolVar(&o.allKinds, "all-kinds", false, "look for what descends among all kinds that the cluster serves")
	o.rules.addFlag(cmd)
	o.output.addFlag(cmd, "wide, json or yaml", outputWide, outputJSON, outputYAML)
	o.accept.addFlag(cmd)
	cmd.ValidArgsFunction = o.cluster.completeWorkload
	return cmd
}

// exactlyOne accepts one argument.
func exactlyOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usage("give %s, and nothing else: see %s --help", what, cmd.CommandPath())
		}
		return nil
	}
}

func (o *treeOptions) run(ctx context.Context, name string) error {
	if err := o.output.validate(); err != nil {
		return err
	}
	if err := o.accept.validate(); err != nil {
		return err
	}
	rules, err := o.rules.load()
	if err != nil {
		return err
	}
	list, err := o.cluster.workloads(ctx, name)
	if err != nil {
		return err
	}
	g, err := newObjectReader(o.cluster, o.allKinds)
	if err != nil {
		return err
	}
	have, err := g.readWorkload(ctx, &list[0])
	if err != nil {
		return err
	}
	root := buildTree(&list[0], have, health.Context{Now: o.plugin.now(), Rules: rules})
	if err := o.show(root, &list[0]); err != nil {
		return err
	}
	for _, trouble := range have.incomplete {
		_, _ = fmt.Fprintln(o.plugin.ErrOut, "kubectl-threeport:", oneLine(trouble))
	}
	return exitWith(o.accept.code(root.Status))
}

// treeNode is an object in the tree. It is also what -o json and -o yaml print.
type treeNode struct {
	APIVersion string        `json:"apiVersion,omitempty"`
	Kind       string        `json:"kind"`
	Namespace  string        `json:"namespace,omitempty"`
	Name       string        `json:"name"`
	Status     health.Status `json:"status"`
	Reason     string        `json:"reason"`
	Message    string        `json:"message"`
	Since      *metav1.Time  `json:"since,omitempty"`
	Created    metav1.Time   `json:"created,omitzero"`
	// State is that of a listed resource; empty for what descends from one.
	State    v1alpha1.ResourceState `json:"state,omitempty"`
	Warning  *warning               `json:"warning,omitempty"`
	Children []*treeNode            `json:"children,omitempty"`

	selfMessage string // what the object says of itself
	oldRevision bool   // a ReplicaSet of an earlier revision
}

// warning is the latest Event of type Warning about an object.
type warning struct {
	Reason  string      `json:"reason"`
	Message string      `json:"message"`
	Time    metav1.Time `json:"time"`
}

func (b *treeNode) setVerdict(a health.Assessment) {
	b.Status, b.Reason, b.Message = a.Status, a.Reason, a.Message
	if !a.Since.IsZero() {
		b.Since = &metav1.Time{Time: a.Since}
	}
}

// buildTree makes the tree of a workload, and judges what is in it.
func buildTree(wl *v1alpha1.ThreeportWorkload, have *workloadObjects, hc health.Context) *treeNode {
	var objects []*unstructured.Unstructured
	for _, s := range have.listed {
		if s.object != nil {
			objects = append(objects, s.object)
		}
	}
	objects = append(append(objects, have.derived...), have.labelled...)
	nodes := map[types.UID]*treeNode{}
	var verdicts []health.Verdict
	top := &treeNode{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ThreeportWorkload", Name: wl.Name, Created: wl.CreationTimestamp}
	forest := health.Forest(objects, func(u *unstructured.Unstructured) health.Context {
		hc.Warning = have.warnings[u.GetUID()]
		return hc
	})
	var loose []*treeNode // roots that no listing and no owner explains
	for _, n := range forest {
		loose = append(loose, newTreeNode(n, have, nodes))
	}
	placed := map[*treeNode]bool{}
	for _, b := range nodes {
		for _, child := range b.Children {
			placed[child] = true // a listed resource below another one
		}
	}
	for i := range have.listed {
		s := &have.listed[i]
		b := nodes[uidOf(s.object)]
		if b == nil {
			b = &treeNode{Kind: s.listed.Kind, Namespace: s.listed.Namespace, Name: s.listed.Name}
			b.setVerdict(s.verdict(health.Assessment{}))
			b.selfMessage = b.Message
		}
		b.State = s.state
		verdicts = append(verdicts, health.Verdict{Status: b.Status, Reason: b.Reason, Message: b.Message})
		if !placed[b] {
			top.Children = append(top.Children, b)
			placed[b] = true
		}
	}
	for _, b := range loose {
		if !placed[b] {
			top.Children = append(top.Children, b)
			verdicts = append(verdicts, health.Verdict{Status: b.Status, Reason: b.Reason, Message: b.Message})
		}
	}
	if len(verdicts) == 0 {
		verdicts = append(verdicts, health.NothingListed)
	}
	top.setVerdict(health.Assessment{Verdict: health.Worst(verdicts...)})
	return top
}

func uidOf(u *unstructured.Unstructured) types.UID {
	if u == nil {
		return ""
	}
	return u.GetUID()
}

// newTreeNode makes the branch of an object, and of what descends from it.
func newTreeNode(n *health.Node, have *workloadObjects, nodes map[types.UID]*treeNode) *treeNode {
	u := n.Object
	b := &treeNode{
		APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(),
		Created: u.GetCreationTimestamp(), selfMessage: n.Self.Message,
		oldRevision: u.GetKind() == "ReplicaSet" && len(n.Children) == 0 && wantsNone(u) && n.Self.Status == health.Healthy,
	}
	b.setVerdict(n.Aggregate.Assessment)
	if w, ok := have.warnings[u.GetUID()]; ok {
		b.Warning = &warning{w.Reason, w.Message, metav1.NewTime(w.Time)}
	}
	nodes[u.GetUID()] = b
	for _, child := range n.Children {
		b.Children = append(b.Children, newTreeNode(child, have, nodes))
	}
	slices.SortStableFunc(b.Children, func(x, y *treeNode) int {
		return cmp.Or(cmp.Compare(rank(x.Status), rank(y.Status)), cmp.Compare(x.Kind, y.Kind),
			y.Created.Compare(x.Created.Time), cmp.Compare(x.Name, y.Name))
	})
	return b
}

func wantsNone(u *unstructured.Unstructured) bool {
	replicas, found, err := unstructured.NestedInt64(u.Object, "spec", "replicas")
	return err == nil && found && replicas == 0
}

// show writes the tree.
func (o *treeOptions) show(root *treeNode, wl *v1alpha1.ThreeportWorkload) error {
	switch o.output.value {
	case outputJSON:
		return writeJSON(o.plugin.Out, root)
	case outputYAML:
		return writeYAML(o.plugin.Out, root)
	}
	now := o.plugin.now()
	t := &table{}
	titles := []string{"OBJECT", "STATUS", "REASON", "SINCE", "AGE", "CAUSE"}
	if o.output.value == outputWide {
		titles = append(titles, "LATEST WARNING")
	}
	t.header(titles...)
	d := treeWriter{table: t, now: now, all: o.all, warnings: o.output.value == outputWide}
	d.add(root, "", "", "")
	if err := t.write(o.plugin.Out, o.plugin.palette, "", o.plugin.width(o.output)); err != nil {
		return err
	}
	told := statusOf(wl)
	if told.Status == root.Status {
		return nil
	}
	text := fmt.Sprintf("The agent says %s", told.Status)
	if since := told.since(); !since.IsZero() {
		text += " since " + since.UTC().Format(time.RFC3339)
	}
	if cause := told.cause(); cause != "" {
		text += ": " + cause
	}
	_, err := fmt.Fprintln(o.plugin.Out, "\n"+oneLine(text))
	return err
}

// treeWriter puts a tree into a table.
type treeWriter struct {
	table    *table
	now      time.Time
	all      bool
	warnings bool // show the latest Events of type Warning
}

// How many objects of a kind, with one owner and one verdict, are shown: all if there are not more than alike, else
// the first few.
const (
	maxAlike   = 10
	shownAlike = 3
)

// add draws a branch: its own line behind stem, the lines below it behind trunk.
func (d *treeWriter) add(b *treeNode, stem, trunk, around string) {
	name := b.Name
	if b.Namespace != around && b.Namespace != "" {
		name = b.Namespace + "/" + name
	}
	cause := b.selfMessage
	if stem == "" { // the root says what the worst of its objects says
		cause = b.Message
	}
	since := none
	if b.Since != nil {
		since = ago(b.Since.Time, d.now)
	}
	row := []cell{
		{stem + b.Kind + " " + name, plain},
		{string(b.Status), styleOf(b.Status)},
		{cmp.Or(b.Reason, none), plain},
		{since, plain},
		{ago(b.Created.Time, d.now), plain},
		{cause, plain},
	}
	if w := b.Warning; d.warnings && w != nil {
		row = append(row, cell{fmt.Sprintf("%s %s ago: %s", w.Reason, ago(w.Time.Time, d.now), w.Message), plain})
	}
	d.table.add(row...)
	shown, hidden := b.Children, []string(nil)
	if !d.all {
		shown, hidden = groupAlike(b.Children)
	}
	for i, child := range shown {
		if i == len(shown)-1 && len(hidden) == 0 {
			d.add(child, trunk+"└─ ", trunk+"   ", b.Namespace)
		} else {
			d.add(child, trunk+"├─ ", trunk+"│  ", b.Namespace)
		}
	}
	for i, text := range hidden {
		stem := "├─ "
		if i == len(hidden)-1 {
			stem = "└─ "
		}
		d.table.add(cell{trunk + stem + text, dim})
	}
}

// groupAlike leaves out objects that are like others, and says how many.
func groupAlike(children []*treeNode) (shown []*treeNode, hidden []string) {
	type likeness struct {
		kind, reason, own string
		status            health.Status
		spent             bool
	}
	of := func(b *treeNode) likeness { return likeness{b.Kind, b.Reason, b.selfMessage, b.Status, b.oldRevision} }
	total, taken, left := map[likeness]int{}, map[likeness]int{}, map[likeness]int{}
	for _, b := range children {
		total[of(b)]++
	}
	var order []likeness
	for _, b := range children {
		l := of(b)
		room := total[l]
		switch {
		case l.spent:
			room = 0
		case total[l] > maxAlike:
			room = shownAlike
		}
		if b.State != "" || taken[l] < room { // what is listed is always shown
			taken[l]++
			shown = append(shown, b)
			continue
		}
		if left[l]++; left[l] == 1 {
			order = append(order, l)
		}
	}
	for _, l := range order {
		text := fmt.Sprintf("… %d more %ss %s", left[l], l.kind, strings.TrimSpace(string(l.status)+" "+l.reason))
		if l.spent {
			text = "… " + many(left[l], "ReplicaSet") + " of earlier revisions"
		}
		hidden = append(hidden, text+" (--all)")
	}
	return shown, hidden
}
