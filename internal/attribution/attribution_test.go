package attribution

import (
	"slices"
	"testing"
)

func TestDefaultNamespace(t *testing.T) {
	for _, tt := range []struct {
		reason string
		listed []string
		want   string
	}{
		{"nothing is listed", nil, "default"},
		{"no resource names a namespace", []string{"", ""}, "default"},
		{"all others name the same", []string{"", "app", "app"}, "app"},
		{"the others name several", []string{"app", "", "db"}, "default"},
	} {
		if got := DefaultNamespace(slices.Values(tt.listed)); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.reason, got, tt.want)
		}
	}
}

func TestLabelScope(t *testing.T) {
	for _, tt := range []struct {
		reason                       string
		isHelm                       bool
		annotated, written, resolved []string
		namespace                    string
		want, everywhere             bool
	}{
		{reason: "a written namespace", written: []string{"app"}, resolved: []string{"app"}, namespace: "app", want: true},
		{reason: "another one", written: []string{"app"}, resolved: []string{"app"}, namespace: "evil"},
		{reason: "the namespace of a cluster-scoped resource", written: []string{"app"}, resolved: []string{""}, namespace: "app", want: true},
		{reason: "a resolved namespace", written: []string{""}, resolved: []string{"default"}, namespace: "default", want: true},
		{reason: "one of the annotation", annotated: []string{"more"}, written: []string{"app"}, resolved: []string{"app"}, namespace: "more", want: true},
		{reason: "a cluster-scoped object", written: []string{"app"}, resolved: []string{"app"}, want: true},
		{reason: "nothing is known", namespace: "app"},
		{reason: "nothing is known of a Helm release", isHelm: true, namespace: "app", want: true, everywhere: true},
		{
			reason: "a Helm release without written namespaces", isHelm: true, written: []string{""}, resolved: []string{"default"}, namespace: "app",
			want: true, everywhere: true,
		},
		{reason: "a Helm release with one", isHelm: true, written: []string{"", "app"}, resolved: []string{"app", "app"}, namespace: "db"},
		{reason: "a Helm release with the annotation", isHelm: true, annotated: []string{"app"}, written: []string{""}, resolved: []string{""}, namespace: "db"},
	} {
		s := NewLabelScope(tt.isHelm, tt.annotated, slices.Values(tt.written), slices.Values(tt.resolved))
		if got := s.Contains(tt.namespace); got != tt.want {
			t.Errorf("%s: Contains(%q) is %t, want %t", tt.reason, tt.namespace, got, tt.want)
		}
		if got := s.IsEverywhere(); got != tt.everywhere {
			t.Errorf("%s: IsEverywhere is %t, want %t", tt.reason, got, tt.everywhere)
		}
	}
}
