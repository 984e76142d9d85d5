package kubectl

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/kubectl/manifest"
)

// selectable are the resources that a selector applies to, in the order of the list.
var selectable = []schema.GroupVersionResource{
	resource("", "v1", "serviceaccounts"),
	resource("rbac.authorization.k8s.io", "v1", "roles"),
	resource("rbac.authorization.k8s.io", "v1", "rolebindings"),
	resource("", "v1", "configmaps"),
	resource("", "v1", "secrets"),
	resource("", "v1", "persistentvolumeclaims"),
	resource("", "v1", "services"),
	resource("apps", "v1", "deployments"),
	resource("apps", "v1", "statefulsets"),
	resource("apps", "v1", "daemonsets"),
	resource("batch", "v1", "jobs"),
	resource("batch", "v1", "cronjobs"),
	resource("", "v1", "pods"),
	resource("networking.k8s.io", "v1", "ingresses"),
	resource("networking.k8s.io", "v1", "networkpolicies"),
	resource("autoscaling", "v2", "horizontalpodautoscalers"),
	resource("policy", "v1", "poddisruptionbudgets"),
}

// object identifies an object of the cluster in any API version.
type object struct{ group, kind, namespace, name string }

// chooser collects the objects for the list of a workload.
type chooser struct {
	*objectReader
	o         *trackOptions
	namespace string

	order    []object
	chosen   map[object]v1alpha1.WorkloadResourceInstance
	named    map[object]bool // named on the command line
	existing map[object]bool // known to exist
}

func newChooser(o *trackOptions) (*chooser, error) {
	reader, err := newObjectReader(o.cluster, false)
	if err != nil {
		return nil, err
	}
	c := &chooser{
		objectReader: reader, o: o, chosen: map[object]v1alpha1.WorkloadResourceInstance{},
		named: map[object]bool{}, existing: map[object]bool{},
	}
	c.namespace, err = o.cluster.namespace()
	return c, err
}

// choose adds the named objects, those in the files, and those that the selector matches.
func (c *chooser) choose(ctx context.Context, args []string) error {
	for _, arg := range args {
		if err := c.chooseNamed(ctx, arg); err != nil {
			return err
		}
	}
	for _, file := range c.o.files {
		if err := c.chooseFile(ctx, file); err != nil {
			return err
		}
	}
	if c.o.selector != "" {
		return c.chooseSelected(ctx)
	}
	return nil
}

// chooseNamed adds an object given as KIND/NAME or KIND/NAME=ID.
func (c *chooser) chooseNamed(ctx context.Context, arg string) error {
	text, idText, hasID := strings.Cut(arg, "=")
	kind, name, ok := strings.Cut(text, "/")
	if !ok || kind == "" || name == "" || strings.Contains(name, "/") {
		return usage("%q is not KIND/NAME or KIND/NAME=ID", arg)
	}
	var id int64
	if hasID {
		var err error
		if id, err = strconv.ParseInt(idText, 10, 64); err != nil || id < 0 {
			return usage("%q: the ID %q is not a whole number from 0 to 2^63-1", arg, idText)
		}
	}
	mapping, err := c.resolve(kind)
	if err != nil {
		return err
	}
	namespace := ""
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		namespace = c.namespace
	}
	o, err := c.put(mapping, namespace, name, id)
	if err != nil {
		return err
	}
	if c.named[o] {
		return usage("%q is given twice", subject(o.kind, o.namespace, o.name))
	}
	c.named[o] = true
	return c.check(ctx, mapping, o)
}

// resolve returns the kind for a word of the command line.
func (c *chooser) resolve(word string) (*meta.RESTMapping, error) {
	full, short := schema.ParseResourceArg(strings.ToLower(word))
	if full != nil {
		if kind, err := c.mapper.KindFor(*full); err == nil {
			return c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		}
	}
	kind, err := c.mapper.KindFor(short.WithVersion(""))
	switch {
	case meta.IsNoMatchError(err):
		return nil, usage("the cluster does not serve the kind %q: `kubectl api-resources` lists those that it does", word)
	case err != nil:
		return nil, clusterFailure("ask for the kind "+word, err)
	}
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, clusterFailure("ask for the kind "+word, err)
	}
	return mapping, nil
}

// put adds an object, or sets the ID of one that was added before.
func (c *chooser) put(mapping *meta.RESTMapping, namespace, name string, id int64) (object, error) {
	kind := mapping.GroupVersionKind
	o := object{kind.Group, kind.Kind, namespace, name}
	switch {
	case kind.GroupKind() == schema.GroupKind{Kind: "Event"} || kind.GroupKind() == schema.GroupKind{Group: "events.k8s.io", Kind: "Event"}:
		return o, usage("Events cannot be tracked: those about a tracked object are reported with it")
	case kind.GroupKind() == v1alpha1.GroupVersion.WithKind("ThreeportWorkload").GroupKind():
		return o, usage("a ThreeportWorkload cannot be tracked: track the objects that it lists")
	}
	r, known := c.chosen[o]
	if !known {
		c.order = append(c.order, o)
		r = v1alpha1.WorkloadResourceInstance{Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Name: name, Namespace: namespace}
	}
	if id > 0 {
		r.ThreeportID = id
	}
	c.chosen[o] = r
	return o, nil
}

// check returns an error if an object does not exist.
func (c *chooser) check(ctx context.Context, mapping *meta.RESTMapping, o object) error {
	if c.o.allowMissing || c.existing[o] {
		return nil
	}
	there := false
	scope := listScope{mapping.Resource, o.namespace}
	err := c.listMetadata(ctx, scope, selectName(o.name), func(*metav1.PartialObjectMetadata) { there = true })
	switch {
	case apierrors.IsForbidden(err):
		_, err := fmt.Fprintf(c.o.plugin.ErrOut, "kubectl-threeport: %s may not be listed, so whether %s exists is not known\n",
			scope, subject(o.kind, o.namespace, o.name))
		return err
	case err != nil:
		return clusterFailure("list "+scope.String(), err)
	case !there:
		return usage("%s does not exist: create it first, or give --allow-missing", subject(o.kind, o.namespace, o.name))
	}
	c.existing[o] = true
	return nil
}

// chooseFile adds the objects of a file.
func (c *chooser) chooseFile(ctx context.Context, file string) error {
	in, err := c.o.plugin.open(file)
	if err != nil {
		return usage("-f: %w", err)
	}
	defer in.Close() //nolint:errcheck // the file is only read
	source := file
	if file == "-" {
		source = "standard input"
	}
	found := false
	for d := range manifest.Documents(ctx, source, in) {
		found = true
		if d.Err != nil {
			return usage("%s: %w", d.Place(), d.Err)
		}
		u := &unstructured.Unstructured{Object: d.Object}
		if u.GetName() == "" {
			return usage("%s: %s has no name", d.Place(), u.GetKind())
		}
		gvk := u.GroupVersionKind()
		mapping, err := c.mapping(gvk.GroupKind(), gvk.Version)
		if meta.IsNoMatchError(err) {
			return usage("%s: the cluster does not serve %s", d.Place(), gvk.GroupKind())
		}
		if err != nil {
			return clusterFailure("ask for the kind "+gvk.Kind, err)
		}
		namespace := u.GetNamespace()
		switch {
		case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
			namespace = ""
		case namespace == "":
			namespace = c.namespace
		}
		o, err := c.put(mapping, namespace, u.GetName(), 0)
		if err != nil {
			return err
		}
		if err := c.check(ctx, mapping, o); err != nil {
			return err
		}
	}
	if !found {
		return usage("there are no objects in %s", source)
	}
	return nil
}

// chooseSelected adds the objects that the selector matches and that have no controller.
func (c *chooser) chooseSelected(ctx context.Context) error {
	mappings, err := c.selectable()
	if err != nil {
		return err
	}
	before := len(c.order)
	for _, mapping := range mappings {
		scope := listScope{mapping.Resource, ""}
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace && !c.o.allNamespaces {
			scope.namespace = c.namespace
		}
		var matched []object
		err := c.listMetadata(ctx, scope, metav1.ListOptions{LabelSelector: c.o.selector}, func(m *metav1.PartialObjectMetadata) {
			if metav1.GetControllerOf(m) == nil {
				matched = append(matched, object{namespace: m.Namespace, name: m.Name})
			}
		})
		if err := c.tolerate(scope.String(), err); err != nil {
			return err
		}
		for _, m := range matched {
			o, err := c.put(mapping, m.namespace, m.name, 0)
			if err != nil {
				return err
			}
			c.existing[o] = true
		}
	}
	c.o.plugin.printNotes(c.takeIncomplete())
	if len(c.order) == before && before == 0 {
		where := "in the namespace " + c.namespace
		if c.o.allNamespaces {
			where = "in any namespace"
		}
		return usage("the selector %s matches nothing %s: try -n, -A or --kinds", c.o.selector, where)
	}
	return nil
}

// selectable returns the kinds that the selector applies to.
func (c *chooser) selectable() ([]*meta.RESTMapping, error) {
	resources := selectable
	switch {
	case slices.Equal(c.o.kinds, []string{"all"}):
		resources = nil
		for _, s := range c.served() {
			if s.namespaced && s.Group != "metrics.k8s.io" && s.Resource != "endpoints" {
				resources = append(resources, s.GroupVersionResource)
			}
		}
	case len(c.o.kinds) > 0:
		var out []*meta.RESTMapping
		for _, word := range c.o.kinds {
			mapping, err := c.resolve(word)
			if err != nil {
				return nil, err
			}
			out = append(out, mapping)
		}
		return out, nil
	}
	var out []*meta.RESTMapping
	for _, r := range resources {
		kind, err := c.mapper.KindFor(r)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, clusterFailure("ask which kinds there are", err)
		}
		mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return nil, clusterFailure("ask which kinds there are", err)
		}
		out = append(out, mapping)
	}
	return out, nil
}

// listed returns the list of resources for the ThreeportWorkload.
func (c *chooser) listed() ([]v1alpha1.WorkloadResourceInstance, error) {
	if len(c.order) > maxListed {
		return nil, usage("these are %d objects, and a ThreeportWorkload lists up to %d: make several with the same --id", len(c.order), maxListed)
	}
	ids := map[int64]object{}
	var out []v1alpha1.WorkloadResourceInstance
	for _, o := range c.order {
		r := c.chosen[o]
		if other, twice := ids[r.ThreeportID]; twice && r.ThreeportID > 0 {
			return nil, usage("%s and %s have the same ID %d: give each the ID of its own WorkloadResourceInstance",
				subject(other.kind, other.namespace, other.name), subject(o.kind, o.namespace, o.name), r.ThreeportID)
		}
		ids[r.ThreeportID] = o
		out = append(out, r)
	}
	return out, nil
}

// names returns KIND/NAME of the objects of a kind.
func (c *chooser) names(ctx context.Context, kind string) []string {
	mapping, err := c.resolve(kind)
	if err != nil {
		return nil
	}
	scope := listScope{GroupVersionResource: mapping.Resource}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		scope.namespace = c.namespace
	}
	var out []string
	err = c.listMetadata(ctx, scope, metav1.ListOptions{}, func(m *metav1.PartialObjectMetadata) { out = append(out, kind+"/"+m.Name) })
	if err != nil {
		return nil
	}
	return out
}
