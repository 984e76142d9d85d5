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
		{reason: "a name alone", in: "web-abc-x2k4q", want: "web-abc-00001"},
		{reason: "as a kubelet writes it", in: "pod=web-abc-x2k4q_ns-1(uid)", want: "pod=web-abc-00001_app(uid)"},
		{reason: "after a slash", in: "ns-1/web-abc-x2k4q", want: "app/web-abc-00001"},
		{reason: "in quotes", in: `pods "web-abc-x2k4q" is forbidden`, want: `pods "web-abc-00001" is forbidden`},
		{reason: "a part of a longer name", in: "web-abc", want: "web-abc"},
		{reason: "the begin of a longer name", in: "web-abc-x2k4q-1", want: "web-abc-x2k4q-1"},
		{
			reason: "a temporary folder",
			in:     "stat /root/.cache/run-42/operators-4211708222/flux-kustomize-2368240424/kustomization-4259340883/absent: none",
			want:   "stat /tmp/absent: none",
		},
		{reason: "a measured duration", in: "finished in 1.066008433s", want: "finished in 1s"},
		{reason: "a duration of a setting", in: "with a timeout of 59m30s", want: "with a timeout of 59m30s"},
		{reason: "a certificate in PEM", in: "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUI=", want: theCertificate},
		{reason: "a certificate of a recording", in: theCertificate, want: theCertificate},
		{reason: "a pod's address", in: "http://10.0.0.4:8080/", want: "http://198.51.100.1:8080/"},
		{reason: "one that another begins with", in: "10.0.0.44", want: "198.51.100.0"},
		{reason: "an address of the node, and loopback", in: "192.0.2.2 127.0.0.1:1", want: "192.0.2.2 127.0.0.1:1"},
		{reason: "the token's volume", in: "kube-api-access-7hk2d", want: "kube-api-access-00000"},
		{reason: "the scheduler", in: "default-scheduler-machine-7", want: "default-scheduler"},
	}
	for _, tt := range tests {
		if got := d.rewrite(tt.in); got != tt.want {
			t.Errorf("%s: %s becomes %s, want %s", tt.reason, tt.in, got, tt.want)
		}
	}
}

func TestDictionary_NumbersInOrderOfAppearance(t *testing.T) {
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 64)
	got := number("containerd://"+b+" "+a+" "+b, identifier, "container-%d")
	if want := "containerd://container-1 container-2 container-1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
