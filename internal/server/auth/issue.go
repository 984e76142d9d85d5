package auth

import (
	"context"
	"regexp"
	"time"

	"github.com/threeport/threeport-agent/internal/server/store"
)

// tokenName is what a token may be called: it is shown in records and tables, so it is one plain word.
var tokenName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,62}$`)

// NewToken is the token that somebody asks for.
type NewToken struct {
	// Name says whose it is, to people.
	Name string `json:"name" minLength:"1" maxLength:"63" pattern:"^[A-Za-z0-9][A-Za-z0-9._@-]*$"`
	// Role is what its bearer may do.
	Role Role `json:"role" enum:"agent,viewer,admin"`
	// ClusterUID is the one cluster that an agent's token is good for: the UID of its namespace kube-system. Other roles
	// have none.
	ClusterUID string `json:"clusterUID,omitempty" maxLength:"128"`
	// ExpiresAt is when it ends; without it, never.
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
}

// check is a [*Problem] that names the first bad field.
func (n NewToken) check(now time.Time) error {
	if !tokenName.MatchString(n.Name) {
		return invalid("name: accepted are 1 to 63 letters, digits and ._@-, the first a letter or digit")
	}
	role, err := ParseRole(string(n.Role))
	if err != nil {
		return invalid("role: accepted are agent, viewer and admin")
	}
	switch {
	case role == RoleAgent && !isClusterUID(n.ClusterUID):
		return invalid("clusterUID: an agent's token needs the UID of its cluster's namespace kube-system, 1 to 128 printable characters")
	case role != RoleAgent && n.ClusterUID != "":
		return invalid("clusterUID: only an agent's token has one")
	case n.ExpiresAt != nil && !n.ExpiresAt.After(now):
		return invalid("expiresAt: accepted is a time to come")
	case n.ExpiresAt != nil && n.ExpiresAt.Year() > 9999:
		return invalid("expiresAt: accepted is a year up to 9999")
	}
	return nil
}

// issue makes a token. The secret is in no other place than the one returned.
func issue(ctx context.Context, s TokenStore, wanted NewToken, now time.Time) (token store.Token, secret string, err error) {
	if err := wanted.check(now); err != nil {
		return store.Token{}, "", err
	}
	secret = newToken(wanted.Role)
	key := digestOf(secret)
	token, err = s.CreateToken(ctx, store.Token{
		Name: wanted.Name, Role: string(wanted.Role), ClusterUID: wanted.ClusterUID,
		CreatedAt: now, ExpiresAt: wanted.ExpiresAt,
	}, key[:])
	return token, secret, err
}
