package informers

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestHowToGrant_NamesRoleOrComponent(t *testing.T) {
	const label = "rbac.threeport.io/aggregate-to-agent=true"
	for _, tt := range []struct{ group, resource, want string }{
		{"", "secrets", "config/components/secrets"},
		{"", "configmaps", "threeport-agent-built-in-kinds"},
		{"apps", "deployments", "threeport-agent-built-in-kinds"},
		{"networking.k8s.io", "ingresses", "threeport-agent-built-in-kinds"},
		{"apiextensions.k8s.io", "customresourcedefinitions", "threeport-agent-built-in-kinds"},
		{"gateway.networking.k8s.io", "httproutes", label},
		{"example.com", "secrets", label},
	} {
		resource := schema.GroupResource{Group: tt.group, Resource: tt.resource}
		if got := howToGrant(resource); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q does not name %s", resource, got, tt.want)
		}
	}
}
