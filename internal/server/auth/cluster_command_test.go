package auth

import (
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/yaml"
)

// standIn writes a program that records its arguments and its standard input in files of its name, and prints a text.
func standIn(t *testing.T, dir, name, prints string) {
	t.Helper()
	script := "#!/bin/sh\necho \"$@\" >>" + filepath.Join(dir, name+".args") + "\n"
	if name == "kubectl" {
		script += "if [ \"$1\" = apply ]; then cat >" + filepath.Join(dir, "applied.yaml") + "; exit; fi\n"
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(script+"echo "+prints+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}

// install runs an installation script with a kubectl that points to the cluster of a UID. It returns what the script applied and the
// arguments for helm.
func install(t *testing.T, script, uid string) (objects []map[string]any, helm string, err error) {
	t.Helper()
	dir := t.TempDir()
	standIn(t, dir, "kubectl", uid)
	standIn(t, dir, "helm", "installed")
	run := exec.CommandContext(t.Context(), "/bin/sh", "-s")
	run.Stdin, run.Env = strings.NewReader(script), []string{"PATH=" + dir + ":/usr/bin:/bin"}
	if output, err := run.CombinedOutput(); err != nil {
		return nil, string(output), err
	}
	applied, err := os.ReadFile(filepath.Join(dir, "applied.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(applied), "\n---\n") {
		object := map[string]any{}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatalf("%v in %s", err, document)
		}
		objects = append(objects, object)
	}
	args, err := os.ReadFile(filepath.Join(dir, "helm.args"))
	return objects, string(args), err
}

func runCluster(t *testing.T, s *fakeStore, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return runCommand(t, RunClusterCommand, s, args...)
}

func TestClusterCommand_Add_ScriptInstallsWithToken(t *testing.T) {
	s := newFakeStore()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	const authority = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
	if err := os.WriteFile(ca, []byte(authority), 0o600); err != nil {
		t.Fatal(err)
	}
	code, script, stderr := runCluster(t, s, "add", "cluster-1", "--uid", clusterUID, "--server=https://api.example:8443", "--ca-file", ca,
		"--chart=o'clock.tgz")
	if code != 0 || !strings.Contains(stderr, `Token 1, "cluster-1" of role agent of cluster `+clusterUID+" with the name cluster-1") {
		t.Fatalf("%d %q, want 0", code, stderr)
	}
	if token := s.tokens[0]; !token.Renewal.Renewable || token.ExpiresAt == nil || token.ExpiresAt.Sub(token.CreatedAt).Round(time.Hour) != 90*24*time.Hour {
		t.Errorf("the token is %+v, want a renewable one of 90 days", token)
	}
	objects, helm, err := install(t, script, clusterUID)
	if err != nil || len(objects) != 3 {
		t.Fatalf("%d objects are applied, want 3: %v, %s", len(objects), err, helm)
	}
	if want := "upgrade --install threeport-agent o'clock.tgz --namespace threeport-agent-system --wait --set components.agent-token=true " +
		"--set-string threeportApiServer=https://api.example:8443\n"; helm != want {
		t.Errorf("helm got %q, want %q", helm, want)
	}
	for i, want := range []struct{ kind, name, key string }{
		{"Namespace", "threeport-agent-system", ""}, {"Secret", "threeport-agent-cert", "token"}, {"Secret", "threeport-agent-ca", "tls.crt"},
	} {
		metadata := objects[i]["metadata"].(map[string]any)
		if objects[i]["kind"] != want.kind || metadata["name"] != want.name {
			t.Errorf("object %d is %v, want %s %s", i, objects[i], want.kind, want.name)
		}
		if want.key == "" {
			continue
		}
		value, err := base64.StdEncoding.DecodeString(objects[i]["data"].(map[string]any)[want.key].(string))
		if err != nil {
			t.Fatal(err)
		}
		switch want.key {
		case "token":
			if s.hashes[string(hashOf(string(value)))] != 1 {
				t.Errorf("the Secret has another token than the store: %q", value)
			}
		default:
			if string(value) != authority {
				t.Errorf("the Secret has the authority %q", value)
			}
		}
	}
	if _, output, err := install(t, script, "another"); err == nil || !strings.Contains(output, clusterUID) {
		t.Errorf("at another cluster, the script ends with %v and prints %q", err, output)
	}
}

func TestClusterCommand_Add_OtherValidity(t *testing.T) {
	for _, tc := range []struct {
		flags              []string
		expires, renewable bool
	}{
		{flags: []string{"--renewable=false"}, expires: true},
		{flags: []string{"--expires="}},
		{flags: []string{"--expires=1d"}, expires: true, renewable: true},
	} {
		s := newFakeStore()
		args := append([]string{"add", "cluster-1", "--uid", clusterUID, "--server=https://api.example"}, tc.flags...)
		code, script, stderr := runCluster(t, s, args...)
		if code != 0 {
			t.Errorf("%v: %d %s", tc.flags, code, stderr)
			continue
		}
		if token := s.tokens[0]; (token.ExpiresAt != nil) != tc.expires || token.Renewal.Renewable != tc.renewable {
			t.Errorf("%v: the token is %+v", tc.flags, token)
		}
		if strings.Contains(script, "unless the agent renews it") != tc.renewable {
			t.Errorf("%v: the script is %s", tc.flags, script)
		}
	}
}

func TestClusterCommand_InvalidArguments(t *testing.T) {
	for _, tc := range []struct {
		reason string
		args   []string
		code   int
		out    string // part of its output
	}{
		{reason: "no verb", code: 2, out: "controlplane cluster: use add"},
		{reason: "help", args: []string{"--help"}, out: "usage: controlplane cluster add"},
		{reason: "help of add", args: []string{"add", "--help"}, out: "-ca-file"},
		{reason: "no name", args: []string{"add", "--uid", clusterUID}, code: 2, out: "the name of the cluster is missing"},
		{reason: "no server", args: []string{"add", "a", "--uid", clusterUID}, code: 2, out: "--server: must be a URL such as"},
		{reason: "plain HTTP", args: []string{"add", "a", "--uid", clusterUID, "--server=http://api.example"}, code: 2, out: "--server"},
		{reason: "two values for Helm", args: []string{"add", "a", "--uid", clusterUID, "--server=https://a,b"}, code: 2, out: "--server"},
		{reason: "no UID", args: []string{"add", "a", "--server=https://api.example"}, code: 2, out: "--uid: must be"},
		{reason: "a bad name", args: []string{"add", "a b", "--uid", clusterUID, "--server=https://api.example"}, code: 2, out: "NAME: must be"},
		{reason: "no authority", args: []string{"add", "a", "--uid", clusterUID, "--server=https://api.example", "--ca-file=/nowhere"}, code: 1, out: "--ca-file: open /nowhere"},
		{reason: "a file without certificates", args: []string{"add", "a", "--uid", clusterUID, "--server=https://api.example", "--ca-file=/dev/null"}, code: 1, out: "no certificate in PEM"},
	} {
		s := newFakeStore()
		code, stdout, stderr := runCluster(t, s, tc.args...)
		if code != tc.code || !strings.Contains(stdout+stderr, tc.out) {
			t.Errorf("%s: %d %q %q, want %d and %q", tc.reason, code, stdout, stderr, tc.code, tc.out)
		}
		if len(s.tokens) > 0 {
			t.Errorf("%s: a token was created", tc.reason)
		}
	}
}
