package version

import "testing"

func TestString(t *testing.T) {
	if got := String(); got == "" {
		t.Error("a build without a release has no version")
	}
	release = "v1.2.3"
	t.Cleanup(func() { release = "" })
	if got := String(); got != "v1.2.3" {
		t.Errorf("the version is %s, want the release that the linker sets", got)
	}
}
