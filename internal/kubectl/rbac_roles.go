package kubectl

import (
	"cmp"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// aggregateLabel is the label of the ClusterRoles whose rules the agent's ClusterRole has.
const aggregateLabel = "rbac.threeport.io/aggregate-to-agent"

// rolesFor returns the roles that grant some needs to the agent. If namespaced, these are a Role with its RoleBinding for each
// namespace, and a ClusterRole for cluster-scoped resources; else one ClusterRole.
func rolesFor(needs []*need, namespaced bool, name string, agent serviceAccount) []any {
	byNamespace := map[string][]*need{}
	for _, n := range needs {
		namespace := ""
		if namespaced {
			namespace = n.namespace
		}
		byNamespace[namespace] = append(byNamespace[namespace], n)
	}
	var out []any
	for _, namespace := range slices.Sorted(maps.Keys(byNamespace)) {
		rules := rulesFor(byNamespace[namespace])
		if namespace == "" {
			out = append(out, clusterRole(name, rules))
		} else {
			out = append(out, role(name, namespace, rules), roleBinding(name, namespace, agent))
		}
	}
	return out
}

// rulesFor returns the rules for some needs: one for each API group and list of verbs.
func rulesFor(needs []*need) []rbacv1.PolicyRule {
	watch := map[schema.GroupResource]bool{}
	for _, n := range needs {
		watch[n.GroupResource] = watch[n.GroupResource] || n.watch
	}
	type ruleKey struct {
		group string
		watch bool
	}
	resources := map[ruleKey][]string{}
	for r, watched := range watch {
		key := ruleKey{r.Group, watched}
		resources[key] = append(resources[key], r.Resource)
	}
	var rules []rbacv1.PolicyRule
	for key, names := range resources {
		slices.Sort(names)
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: []string{key.group}, Resources: names, Verbs: (&need{watch: key.watch}).verbs(),
		})
	}
	slices.SortFunc(rules, func(a, b rbacv1.PolicyRule) int {
		return cmp.Or(cmp.Compare(a.APIGroups[0], b.APIGroups[0]), cmp.Compare(len(b.Verbs), len(a.Verbs)))
	})
	return rules
}

func clusterRole(name string, rules []rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{aggregateLabel: "true"}},
		Rules:      rules,
	}
}

func role(name, namespace string, rules []rbacv1.PolicyRule) *rbacv1.Role {
	return &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Rules:      rules,
	}
}

func roleBinding(name, namespace string, agent serviceAccount) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: agent.name, Namespace: agent.namespace}},
	}
}
