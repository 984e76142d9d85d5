package version

import "testing"

func TestString(t *testing.T) {
	if got := String(); got == "" {
		t.Error("expected a build without a release to say what the toolchain knows of it")
	}
	release = "v1.2.3"
	t.Cleanup(func() { release = "" })
	if got := String(); got != "v1.2.3" {
		t.Errorf("expected the release that the linker set, got %s", got)
	}
}
