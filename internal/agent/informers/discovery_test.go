package informers

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestGroupHint(t *testing.T) {
	for kind, want := range map[schema.GroupKind]string{
		{Kind: "Deployment"}:                   `; the group of Deployment is "apps"`,
		{Group: "app", Kind: "Deployment"}:     `; the group of Deployment is "apps"`,
		{Group: "extensions", Kind: "Service"}: `; the group of Service is ""`,
		{Group: "example.com", Kind: "Widget"}: "",
	} {
		if got := groupHint(kind); got != want {
			t.Errorf("the hint for %v is %q, want %q", kind, got, want)
		}
	}
}

// A kind with a path as its version or group would be another kind under a second name.
func TestClients_Resolve_NoKind(t *testing.T) {
	for _, gvk := range []schema.GroupVersionKind{
		{Version: "../api/v1", Kind: "Secret"},
		{Version: "./v1", Kind: "Secret"},
		{Version: "v1/", Kind: "Secret"},
		{Version: "V1", Kind: "Secret"},
		{Group: "../api", Version: "v1", Kind: "Secret"},
		{Group: "a/..", Version: "v1", Kind: "Secret"},
	} {
		for _, cached := range []bool{false, true} {
			if _, err := (&Clients{}).resolve(t.Context(), gvk, cached); !errors.Is(err, errNotInstalled) {
				t.Errorf("%v is resolved, or fails with %v; want %v", gvk, err, errNotInstalled)
			}
		}
	}
	for _, gvk := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "Pod"},
		{Group: "my-group.example.com", Version: "v1alpha1", Kind: "Widget"},
		{Group: "apps", Kind: "Deployment"},
	} {
		if !isKind(gvk) {
			t.Errorf("%v is no kind", gvk)
		}
	}
}
