package recording

import (
	"strings"
	"testing"
)

func TestDictionary(t *testing.T) {
	d := newDictionary()
	d.tokens["web-abc-x2k4q"] = "web-abc-00001"
	d.tokens["web"] = "never"
	d.tokens["ns-1"] = Namespace
	d.addresses["10.0.0.4"] = "198.51.100.1"
	tests := []struct{ reason, in, want string }{
		{"a name alone", "web-abc-x2k4q", "web-abc-00001"},
		{"as a kubelet writes it", "pod=web-abc-x2k4q_ns-1(uid)", "pod=web-abc-00001_app(uid)"},
		{"after a slash", "ns-1/web-abc-x2k4q", "app/web-abc-00001"},
		{"in quotes", `pods "web-abc-x2k4q" is forbidden`, `pods "web-abc-00001" is forbidden`},
		{"a part of a longer name", "web-abc", "web-abc"},
		{"the begin of a longer name", "web-abc-x2k4q-1", "web-abc-x2k4q-1"},
		{"a pod's address", "http://10.0.0.4:8080/", "http://198.51.100.1:8080/"},
		{"one that another begins with", "10.0.0.44", "198.51.100.0"},
		{"an address of the node, and loopback", "192.0.2.2 127.0.0.1:1", "192.0.2.2 127.0.0.1:1"},
		{"the token's volume", "kube-api-access-7hk2d", "kube-api-access-00000"},
		{"the scheduler", "default-scheduler-machine-7", "default-scheduler"},
	}
	for _, tt := range tests {
		if got := d.rewrite(tt.in); got != tt.want {
			t.Errorf("%s: %s becomes %s, want %s", tt.reason, tt.in, got, tt.want)
		}
	}
}

func TestNumbersAreGivenInOrderOfAppearance(t *testing.T) {
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 64)
	got := number("containerd://"+b+" "+a+" "+b, identifier, "container-%d")
	if want := "containerd://container-1 container-2 container-1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
