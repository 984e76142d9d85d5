package auth

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

// runToken runs the command.
func runToken(t *testing.T, s *fakeStore, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, complaints bytes.Buffer
	code = RunTokenCommand(t.Context(), args, s, &out, &complaints)
	return code, out.String(), complaints.String()
}

func TestTokenCommand(t *testing.T) {
	s := newFakeStore()
	code, stdout, stderr := runToken(t, s, "create", "--role=agent", "--name", "cluster-1", "--cluster="+clusterUID, "--expires=90d")
	secret := strings.TrimSuffix(stdout, "\n")
	if code != 0 || !wholeToken.MatchString(secret) || strings.Contains(stderr, secret) || !strings.Contains(stderr, `Token 1, "cluster-1" of role agent of cluster `+clusterUID) {
		t.Fatalf("%d %q %q, want 0", code, stdout, stderr)
	}
	if got := s.tokens[0]; got.ExpiresAt == nil || time.Until(*got.ExpiresAt) < 89*24*time.Hour || s.hashes[string(hashOf(secret))] != 1 {
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
		!strings.Contains(lines[1], clusterUID+"  valid") || !strings.Contains(lines[2], "viewer  -") || !strings.Contains(lines[2], "revoked") {
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
		{"nothing", nil, 2, "use create, list or revoke"},
		{"an unknown verb", []string{"delete"}, 2, "use create, list or revoke"},
		{"help", []string{"--help"}, 0, "usage: controlplane token create"},
		{"help of create", []string{"create", "--help"}, 0, "-expires"},
		{"no role", []string{"create", "--name=a"}, 2, `--role: "" is not a role: use admin, viewer or agent`},
		{"an unknown role", []string{"create", "--name=a", "--role=x"}, 2, `--role: "x" is not a role: use admin, viewer or agent`},
		{"a token for the role", []string{"create", "--name=a", "--role=" + secret}, 2, "--role: the value is a token"},
		{"no name", []string{"create", "--role=viewer"}, 2, "--name: must be"},
		{"no cluster", []string{"create", "--role=agent", "--name=a"}, 2, "--cluster: must be the UID"},
		{"an administrator with a cluster", []string{"create", "--role=admin", "--name=a", "--cluster=b"}, 2, "--cluster: must be omitted"},
		{"a bad time", []string{"create", "--role=admin", "--name=a", "--expires=soon"}, 2, "--expires: must be a time such as"},
		{"too many days", []string{"create", "--role=admin", "--name=a", "--expires=99999999d"}, 2, "--expires: must be a time such as"},
		{"negative days", []string{"create", "--role=admin", "--name=a", "--expires=-1d"}, 2, "--expires: must be a time in the future"},
		{"a time in the past", []string{"create", "--role=admin", "--name=a", "--expires=2020-01-01T00:00:00Z"}, 2, "--expires: must be a time in the future"},
		{"an unknown flag", []string{"create", "--rule=admin"}, 2, "unknown flag"},
		{"an extra argument", []string{"list", "all"}, 2, "1 arguments besides flags, want 0"},
		{"an unknown flag of list", []string{"list", "--all"}, 2, "unknown flag"},
		{"nothing to revoke", []string{"revoke"}, 2, "0 arguments besides flags, want 1"},
		{"a token to revoke", []string{"revoke", secret}, 2, "the ID of a token must be a number"},
		{"a token for a flag", []string{"revoke", "--" + secret}, 2, "unknown flag"},
		{"an unknown token", []string{"revoke", "7"}, 1, "there is no token 7"},
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
