package auth

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// runCommand runs a command on tokens.
func runCommand(
	t *testing.T, run func(context.Context, []string, CommandStore, io.Writer, io.Writer) int, s *fakeStore, args ...string,
) (code int, stdout, stderr string) {
	t.Helper()
	var out, complaints bytes.Buffer
	code = run(t.Context(), args, s, &out, &complaints)
	return code, out.String(), complaints.String()
}

func runToken(t *testing.T, s *fakeStore, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return runCommand(t, RunTokenCommand, s, args...)
}

func TestTokenCommand(t *testing.T) {
	s := newFakeStore()
	code, stdout, stderr := runToken(t, s, "create", "--role=agent", "--name", "cluster-1", "--cluster="+clusterUID, "--expires=90d", "--renewable")
	secret := strings.TrimSuffix(stdout, "\n")
	if code != 0 || !wholeToken.MatchString(secret) || strings.Contains(stderr, secret) || !strings.Contains(stderr, `Token 1, "cluster-1" of role agent of cluster `+clusterUID) {
		t.Fatalf("%d %q %q, want 0", code, stdout, stderr)
	}
	if got := s.tokens[0]; got.ExpiresAt == nil || time.Until(*got.ExpiresAt) < 89*24*time.Hour || s.hashes[string(hashOf(secret))] != 1 || !got.Renewal.Renewable {
		t.Errorf("the stored token is %+v", got)
	}
	if code, stdout, stderr = runToken(t, s, "create", "--role", "viewer", "--name", "jane"); code != 0 || !strings.Contains(stderr, "expires never") {
		t.Errorf("%d %q %q, want 0", code, stdout, stderr)
	}
	if code, stdout, stderr = runToken(t, s, "revoke", "2"); code != 0 || stdout != "Token 2, \"jane\" of role viewer, is revoked.\n" || stderr != "" {
		t.Errorf("%d %q %q, want 0, %q and none", code, stdout, stderr, "Token 2, \"jane\" of role viewer, is revoked.\n")
	}
	code, stdout, stderr = runToken(t, s, "list")
	lines := strings.Split(stdout, "\n")
	if code != 0 || stderr != "" || len(lines) != 4 || strings.Contains(stdout, secret) ||
		!strings.Contains(lines[1], clusterUID+"  valid") || !strings.Contains(lines[2], "viewer  -") || !strings.Contains(lines[0], "RENEWED") || !strings.Contains(lines[2], "revoked") {
		t.Errorf("the list exited with %d and printed %s, stderr %q", code, stdout, stderr)
	}
	var recorded []string
	for _, r := range s.audit {
		recorded = append(recorded, r.Principal+" "+r.Method+" "+r.Path)
	}
	if got := strings.Join(recorded, ", "); got != "command:controlplane POST /v0/tokens, command:controlplane POST /v0/tokens, command:controlplane DELETE /v0/tokens/2" {
		t.Errorf("recorded %s, want \"command:controlplane POST /v0/tokens, command:controlplane POST /v0/tokens, command:controlplane DELETE /v0/tokens/2\"", got)
	}
}

func hashOf(secret string) []byte {
	key := digestOf(secret)
	return key[:]
}

func TestTokenCommand_InvalidArguments(t *testing.T) {
	secret := newToken(RoleAdmin)
	for _, tc := range []struct {
		reason string
		args   []string
		code   int
		out    string // part of its output
	}{
		{reason: "no verb", code: 2, out: "use create, list or revoke"},
		{reason: "an unknown verb", args: []string{"delete"}, code: 2, out: "use create, list or revoke"},
		{reason: "help", args: []string{"--help"}, out: "usage: controlplane token create"},
		{reason: "help of create", args: []string{"create", "--help"}, out: "-expires"},
		{reason: "no role", args: []string{"create", "--name=a"}, code: 2, out: `--role: "" is not a role: use admin, viewer or agent`},
		{
			reason: "an unknown role", args: []string{"create", "--name=a", "--role=x"},
			code: 2, out: `--role: "x" is not a role: use admin, viewer or agent`,
		},
		{reason: "a token for the role", args: []string{"create", "--name=a", "--role=" + secret}, code: 2, out: "--role: the value is a token"},
		{reason: "no name", args: []string{"create", "--role=viewer"}, code: 2, out: "--name: must be"},
		{reason: "no cluster", args: []string{"create", "--role=agent", "--name=a"}, code: 2, out: "--cluster: must be the UID"},
		{
			reason: "an administrator with a cluster", args: []string{"create", "--role=admin", "--name=a", "--cluster=b"},
			code: 2, out: "--cluster: must be omitted",
		},
		{
			reason: "a renewable viewer", args: []string{"create", "--role=viewer", "--name=a", "--expires=1d", "--renewable"},
			code: 2, out: "--renewable: must be omitted",
		},
		{
			reason: "a bad time", args: []string{"create", "--role=admin", "--name=a", "--expires=soon"},
			code: 2, out: "--expires: must be a time such as",
		},
		{
			reason: "too many days",
			args:   []string{"create", "--role=admin", "--name=a", "--expires=99999999d"},
			code:   2, out: "--expires: must be a time such as",
		},
		{
			reason: "negative days", args: []string{"create", "--role=admin", "--name=a", "--expires=-1d"},
			code: 2, out: "--expires: must be a time in the future",
		},
		{
			reason: "a time in the past",
			args:   []string{"create", "--role=admin", "--name=a", "--expires=2020-01-01T00:00:00Z"},
			code:   2, out: "--expires: must be a time in the future",
		},
		{reason: "an unknown flag", args: []string{"create", "--rule=admin"}, code: 2, out: "unknown flag"},
		{reason: "an extra argument", args: []string{"list", "all"}, code: 2, out: "1 arguments besides flags, want 0"},
		{reason: "an unknown flag of list", args: []string{"list", "--all"}, code: 2, out: "unknown flag"},
		{reason: "nothing to revoke", args: []string{"revoke"}, code: 2, out: "0 arguments besides flags, want 1"},
		{reason: "a token to revoke", args: []string{"revoke", secret}, code: 2, out: "the ID of a token must be a number"},
		{reason: "a token for a flag", args: []string{"revoke", "--" + secret}, code: 2, out: "unknown flag"},
		{reason: "an unknown token", args: []string{"revoke", "7"}, code: 1, out: "there is no token 7"},
	} {
		s := newFakeStore()
		code, stdout, stderr := runToken(t, s, tc.args...)
		if code != tc.code || !strings.Contains(stdout+stderr, tc.out) || strings.Contains(stdout+stderr, secret) {
			t.Errorf("%s: %d %q %q, want %d", tc.reason, code, stdout, stderr, tc.code)
		}
		if (stdout != "") != (code == 0) || len(s.tokens)+len(s.audit) > 0 {
			t.Errorf("%s: the command printed %q and stored %v and %v, want output only on success and no change", tc.reason, stdout, s.tokens, s.audit)
		}
	}
}

func TestTokenCommand_StoreFails(t *testing.T) {
	s := newFakeStore()
	s.fail(errors.New("connection refused"))
	for _, args := range [][]string{{"create", "--role=viewer", "--name=a"}, {"list"}, {"revoke", "1"}} {
		if code, stdout, stderr := runToken(t, s, args...); code != 1 || stdout != "" || !strings.Contains(stderr, "connection refused") {
			t.Errorf("%v: %d %q %q, want 1 and none", args, code, stdout, stderr)
		}
	}
}
