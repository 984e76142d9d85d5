package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKubernetesVersion(t *testing.T) {
	tests := []struct {
		reason, minor, assets string
		want                  string // a prefix of the version
		wantErrors            []string
	}{
		{reason: "the default", want: "v1.36."},
		{reason: "the default by its minor", minor: "1.36", want: "v1.36."},
		{reason: "another minor", minor: "1.35", want: "v1.35."},
		{reason: "a minor without a pin", minor: "1.20", wantErrors: []string{KubernetesEnv, `"1.20"`, "1.35, 1.36, 1.37"}},
		{reason: "a patch version", minor: "1.36.3", wantErrors: []string{"want one of 1.35"}},
		{reason: "two choices", minor: "1.35", assets: "/opt/assets", wantErrors: []string{KubernetesEnv, assetsEnv}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			t.Setenv(KubernetesEnv, tt.minor)
			t.Setenv(assetsEnv, tt.assets)
			got, err := KubernetesVersion(t.Context())
			if !strings.HasPrefix(got, tt.want) || (err != nil) != (tt.wantErrors != nil) {
				t.Errorf("got %q, %v", got, err)
			}
			for _, want := range tt.wantErrors {
				if err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %s: %v", want, err)
				}
			}
		})
	}
}

func TestFindBinaries_OtherMinorHasNoKubelet(t *testing.T) {
	t.Setenv(assetsEnv, "")
	t.Setenv(KubernetesEnv, "1.35")
	if got, err := FindBinaries(t.Context(), t.Output(), Kubelet); err == nil || !strings.Contains(err.Error(), "unset "+KubernetesEnv) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestBuild_TwoPins_KeepBothBinaries(t *testing.T) {
	goCache, err := goTool(t.Context(), ".", "env", "GOCACHE")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", strings.TrimSpace(string(goCache)))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", os.Getenv("XDG_CACHE_HOME"))
	var paths []string
	for _, source := range []string{"package main\n\nfunc main() {}\n", "package main\n\nfunc main() { println(1) }\n"} {
		fake := fakePin(t, source)
		b, err := newBuilder(t.Context(), fake.pin, fake.source, t.Output())
		if err != nil {
			t.Fatal(err)
		}
		path, err := b.binary(t.Context(), Kwok)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	if filepath.Dir(paths[0]) == filepath.Dir(paths[1]) {
		t.Errorf("both pins have the folder %s", filepath.Dir(paths[0]))
	}
	for _, path := range paths {
		if !executable(path) {
			t.Errorf("no binary %s", path)
		}
	}
}
