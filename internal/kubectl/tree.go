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
		Short: "Show the objects of a workload, each with its health",
		Long: "Reads the objects that a ThreeportWorkload lists, their descendants by owner references, and the objects with its label. It " +
			"assesses their current state without the agent. It searches for Deployments, StatefulSets, " +
			"DaemonSets, ReplicaSets, ReplicationControllers, Jobs, CronJobs, Pods, Services, EndpointSlices, Ingresses and " +
			"PersistentVolumeClaims in the namespaces of the listed objects. If custom resources are listed, it also searches all kinds of " +
			"their API groups. --all-kinds searches all kinds that the cluster serves.\n\n" +
			"STATUS and REASON of an object include its descendants; CAUSE is about the object itself. An object that does not " +
			"exist or may not be read is shown as such. Only the first few of many similar objects are shown, unless --all is given." +
			connectionHelp + "\n\n" + exitHelp,
		Example: `  # The objects of web, and their faults
  kubectl threeport tree web

  # All objects of all kinds
  kubectl threeport tree web --all --all-kinds

  # For a program
  kubectl threeport tree web -o json | jq '.children[] | select(.status != "Healthy")'`,
		Args: exactlyOne("the name of a ThreeportWorkload"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.cluster = newConnection(cmd)
	cmd.Flags().BoolVar(&o.all, "all", false, "show all similar objects, and ReplicaSets of earlier revisions")
	cmd.Flags().BoolVar(&o.allKinds, "all-kinds", false, "search all kinds that the cluster serves for descendants")
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
	if *o.cluster.flags.Namespace != "" {
		return usage("leave out -n: ThreeportWorkload %s is cluster-scoped", name)
	}
	rules, err := o.rules.load()
	if err != nil {
		return err
	}
	list, err := o.cluster.workloads(ctx, name)
	if err != nil {
		return err
	}
	reader, err := newObjectReader(o.cluster, o.allKinds)
	if err != nil {
		return err
	}
	have, err := reader.readWorkload(ctx, &list[0])
	if err != nil {
		return err
	}
	root := buildTree(&list[0], have, health.Context{Now: o.plugin.now(), Rules: rules})
	leases, err := o.cluster.leases(ctx, list)
	if err != nil {
		return err
	}
	if err := o.show(root, &statusesOf(list, leases, o.cluster.clock.at(o.plugin.now()))[0]); err != nil {
		return err
	}
	o.plugin.printNotes(have.incomplete)
	return exitWith(o.accept.code(root.Status))
}

// treeNode is an object in the tree, as -o json and -o yaml print it.
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
	// State is the state of a listed resource; empty for a descendant.
	State    v1alpha1.ResourceState `json:"state,omitempty"`
	Warning  *warning               `json:"warning,omitempty"`
	Children []*treeNode            `json:"children,omitempty"`

	selfMessage string // the message of the object without its descendants
	oldRevision bool   // a ReplicaSet of an earlier revision
}

// each visits the nodes below a node.
func (n *treeNode) each(visit func(*treeNode)) {
	for _, child := range n.Children {
		visit(child)
		child.each(visit)
	}
}

// warning is the latest Event of type Warning about an object.
type warning struct {
	Reason  string      `json:"reason"`
	Message string      `json:"message"`
	Time    metav1.Time `json:"time"`
}

func (n *treeNode) setVerdict(a health.Assessment) {
	n.Status, n.Reason, n.Message = a.Status, a.Reason, a.Message
	if !a.Since.IsZero() {
		n.Since = &metav1.Time{Time: a.Since}
	}
}

// setSince takes the start of a status from the agent, which remembers more than the objects record, if both agree on the status.
func (n *treeNode) setSince(status string, since *metav1.Time) {
	if since != nil && status == string(n.Status) {
		n.Since = since
	}
}

// buildTree returns the tree of a workload with the verdicts on its objects. The verdict on the workload is computed as the agent
// computes it, without the history that the agent has.
func buildTree(wl *v1alpha1.ThreeportWorkload, have *workloadObjects, hc health.Context) *treeNode {
	var objects []*unstructured.Unstructured
	for _, s := range have.listed {
		if s.object != nil {
			objects = append(objects, s.object)
		}
	}
	objects = append(append(objects, have.derived...), have.labelled...)
	nodes := map[types.UID]*treeNode{}
	var verdicts, unchecked []health.ResourceVerdict
	top := &treeNode{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ThreeportWorkload", Name: wl.Name, Created: wl.CreationTimestamp}
	forest := health.Forest(objects, func(u *unstructured.Unstructured) health.Context {
		hc.Warning = have.warnings[u.GetUID()]
		return hc
	})
	var roots []*treeNode // nodes without an owner, listed or not
	for _, n := range forest {
		roots = append(roots, newTreeNode(n, have, nodes))
	}
	placed := map[*treeNode]bool{}
	for _, node := range nodes {
		for _, child := range node.Children {
			placed[child] = true // a listed resource may be below another one
		}
	}
	for i := range have.listed {
		s := &have.listed[i]
		node := nodes[uidOf(s.object)]
		if node == nil {
			node = &treeNode{Kind: s.listed.Kind, Namespace: s.listed.Namespace, Name: s.listed.Name}
			node.setVerdict(s.verdict(health.Assessment{}))
			node.selfMessage = node.Message
		}
		node.State = s.state
		if at := slices.IndexFunc(wl.Status.Resources, s.isReportedAs); at >= 0 {
			node.setSince(wl.Status.Resources[at].Health, wl.Status.Resources[at].HealthSince)
		}
		v := health.ResourceVerdict{
			ObjectRef: health.ObjectRef{Kind: s.listed.Kind, Name: s.listed.Name},
			Verdict:   health.Verdict{Status: node.Status, Reason: node.Reason, Message: node.Message},
		}
		if s.notChecked() {
			unchecked = append(unchecked, v)
		} else {
			verdicts = append(verdicts, v)
		}
		if !placed[node] {
			top.Children = append(top.Children, node)
			placed[node] = true
		}
	}
	var labelled []*health.Node
	for i, node := range roots {
		if !placed[node] {
			top.Children = append(top.Children, node)
			labelled = append(labelled, forest[i])
		}
	}
	if v, ok := health.Labelled(labelled); ok {
		verdicts = append(verdicts, health.ResourceVerdict{Verdict: v})
	}
	top.setVerdict(health.Assessment{Verdict: health.Workload(verdicts, unchecked...)})
	top.setSince(wl.Status.Health, wl.Status.HealthSince)
	return top
}

func uidOf(u *unstructured.Unstructured) types.UID {
	if u == nil {
		return ""
	}
	return u.GetUID()
}

// newTreeNode returns the node of an object with its descendants.
func newTreeNode(n *health.Node, have *workloadObjects, nodes map[types.UID]*treeNode) *treeNode {
	u := n.Object
	node := &treeNode{
		APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(),
		Created: u.GetCreationTimestamp(), selfMessage: n.Self.Message,
		oldRevision: u.GetKind() == "ReplicaSet" && len(n.Children) == 0 && wantsNone(u) && n.Self.Status == health.Healthy,
	}
	node.setVerdict(n.Aggregate.Assessment)
	if w, ok := have.warnings[u.GetUID()]; ok {
		node.Warning = &warning{w.Reason, w.Message, metav1.NewTime(w.Time)}
	}
	nodes[u.GetUID()] = node
	for _, child := range n.Children {
		node.Children = append(node.Children, newTreeNode(child, have, nodes))
	}
	slices.SortStableFunc(node.Children, func(x, y *treeNode) int {
		return cmp.Or(cmp.Compare(rank(x.Status), rank(y.Status)), cmp.Compare(x.Kind, y.Kind),
			y.Created.Compare(x.Created.Time), cmp.Compare(x.Name, y.Name))
	})
	return node
}

func wantsNone(u *unstructured.Unstructured) bool {
	replicas, found, err := unstructured.NestedInt64(u.Object, "spec", "replicas")
	return err == nil && found && replicas == 0
}

// show writes the tree, below the difference from the reported status if there is one.
func (o *treeOptions) show(root *treeNode, reported *workloadStatus) error {
	switch o.output.value {
	case outputJSON:
		return writeJSON(o.plugin.Out, root)
	case outputYAML:
		return writeYAML(o.plugin.Out, root)
	}
	now := o.plugin.now()
	if text := difference(root, reported, now); text != "" {
		if _, err := fmt.Fprintln(o.plugin.Out, oneLine(text)+"\n"); err != nil {
			return err
		}
	}
	return o.table(root, now).write(o.plugin.Out, o.plugin.palette, "", o.plugin.width(o.output))
}

// table returns the table of a tree. A cause that does not fit is below its object.
func (o *treeOptions) table(root *treeNode, now time.Time) *table {
	titles := []string{"OBJECT", "STATUS", "SINCE", "REASON", "AGE"}
	t := &table{wrapped: len(titles)}
	titles = append(titles, "CAUSE")
	if o.output.value == outputWide { // it is not cut, so nothing is below a row
		titles = append(titles, "LATEST WARNING")
	}
	t.header(titles...)
	w := treeWriter{table: t, now: now, all: o.all, warnings: o.output.value == outputWide}
	w.add(root, "", "", "")
	return t
}

// difference returns a sentence with both verdicts on a workload; empty if they agree.
func difference(root *treeNode, reported *workloadStatus, now time.Time) string {
	agent := "The agent reports " + string(reported.Status)
	switch {
	case reported.LastStatus != "":
		agent = fmt.Sprintf("No report of the agent since %s (last status: %s)", reported.since().UTC().Format(time.RFC3339), reported.LastStatus)
	case reported.Status == root.Status && letters(reported.Reason) == letters(root.Reason):
		return ""
	default:
		if since := reported.since(); !since.IsZero() {
			agent += " for " + ago(since, now)
		}
		if cause := reported.cause(); cause != "" {
			agent += " (" + cause + ")"
		}
	}
	plugin := string(root.Status)
	if root.Reason != "" {
		plugin += " (" + root.Reason + ")"
	}
	return agent + ". The plugin assessed the objects now: " + plugin + "."
}

// letters returns the ASCII letters of a reason, without case. The agent changes the other characters of reasons.
func letters(reason string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}, strings.ToLower(reason))
}

// treeWriter writes a tree to a table.
type treeWriter struct {
	table    *table
	now      time.Time
	all      bool
	warnings bool // show the latest Events of type Warning
}

// Limits of similar objects, which have the same owner, kind and verdict. If there are more than maxSimilar, only the
// first shownSimilar are shown.
const (
	maxSimilar   = 10
	shownSimilar = 3
)

// add draws a node after prefix, and its children after childPrefix.
func (w *treeWriter) add(n *treeNode, prefix, childPrefix, around string) {
	name := n.Name
	if n.Namespace != around && n.Namespace != "" {
		name = n.Namespace + "/" + name
	}
	cause := n.selfMessage
	if prefix == "" { // the root has the cause of its worst object
		cause = n.Message
	}
	since := none
	if n.Since != nil {
		since = ago(n.Since.Time, w.now)
	}
	row := []cell{
		{prefix + n.Kind + " " + name, plain},
		{string(n.Status), styleOf(n.Status)},
		{since, plain},
		{cmp.Or(n.Reason, none), plain},
		{ago(n.Created.Time, w.now), plain},
		{cause, plain},
	}
	if latest := n.Warning; w.warnings && latest != nil {
		row = append(row, cell{fmt.Sprintf("%s %s ago: %s", latest.Reason, ago(latest.Time.Time, w.now), latest.Message), plain})
	}
	shown, hidden := n.Children, []string(nil)
	if !w.all {
		shown, hidden = groupSimilar(n.Children)
	}
	margin := childPrefix + "   "
	if len(shown)+len(hidden) > 0 {
		margin = childPrefix + "│  "
	}
	w.table.addWithMargin(margin, row...)
	for i, child := range shown {
		if i == len(shown)-1 && len(hidden) == 0 {
			w.add(child, childPrefix+"└─ ", childPrefix+"   ", n.Namespace)
		} else {
			w.add(child, childPrefix+"├─ ", childPrefix+"│  ", n.Namespace)
		}
	}
	for i, text := range hidden {
		connector := "├─ "
		if i == len(hidden)-1 {
			connector = "└─ "
		}
		w.table.add(cell{childPrefix + connector + text, dim})
	}
}

// groupSimilar removes similar objects beyond the limits, and returns a line for each removed group.
func groupSimilar(children []*treeNode) (shown []*treeNode, hidden []string) {
	type likeness struct {
		kind, reason, own string
		status            health.Status
		spent             bool
	}
	of := func(n *treeNode) likeness { return likeness{n.Kind, n.Reason, n.selfMessage, n.Status, n.oldRevision} }
	total, taken, left := map[likeness]int{}, map[likeness]int{}, map[likeness]int{}
	for _, n := range children {
		total[of(n)]++
	}
	var order []likeness
	for _, n := range children {
		l := of(n)
		room := total[l]
		switch {
		case l.spent:
			room = 0
		case total[l] > maxSimilar:
			room = shownSimilar
		}
		if n.State != "" || taken[l] < room { // listed objects are always shown
			taken[l]++
			shown = append(shown, n)
			continue
		}
		if left[l]++; left[l] == 1 {
			order = append(order, l)
		}
	}
	for _, l := range order {
		text := fmt.Sprintf("… %d more %s %s", left[l], plural(left[l], l.kind), strings.TrimSpace(string(l.status)+" "+l.reason))
		if l.spent {
			text = "… " + many(left[l], "ReplicaSet") + " of earlier revisions"
		}
		hidden = append(hidden, text+" (--all)")
	}
	return shown, hidden
}
