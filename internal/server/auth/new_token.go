package auth

import (
	"context"
	"regexp"
	"time"

	"github.com/threeport/threeport-agent/internal/server/store"
)

// tokenName is the form of a token's name: one word, since records and tables show it.
var tokenName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,62}$`)

// NewToken requests a token.
type NewToken struct {
	// Name is for people.
	Name string `json:"name" minLength:"1" maxLength:"63" pattern:"^[A-Za-z0-9][A-Za-z0-9._@-]*$"`
	// Role has the permissions of the bearer.
	Role Role `json:"role" enum:"agent,viewer,admin"`
	// ClusterUID is the cluster of an agent's token: the UID of its namespace kube-system. Other roles have none.
	ClusterUID string `json:"clusterUID,omitempty" maxLength:"128"`
	// ClusterName fixes the name of the cluster of an agent's token: the name that its agent reports is ignored.
	ClusterName string `json:"clusterName,omitempty" maxLength:"63" pattern:"^([A-Za-z0-9][A-Za-z0-9._@-]*)?$"`
	// ExpiresAt is the end of its validity; without it, there is none.
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
	// Renewable permits the bearer to replace the token before its end. Only an agent's token with an end can be renewable.
	Renewable bool `json:"renewable,omitempty"`
}

// check returns a [*store.FieldError] for the first invalid field.
func (n NewToken) check(now time.Time) error {
	if !tokenName.MatchString(n.Name) {
		return &store.FieldError{Field: "name", Accepted: "1 to 63 letters, digits and ._@-, beginning with a letter or digit"}
	}
	role, err := ParseRole(string(n.Role))
	if err != nil {
		return &store.FieldError{Field: "role", Accepted: "agent, viewer or admin"}
	}
	if err := n.checkCluster(role); err != nil {
		return err
	}
	return n.checkValidity(role, now)
}

// checkCluster checks the fields of an agent's cluster.
func (n NewToken) checkCluster(role Role) error {
	switch {
	case role == RoleAgent && !IsClusterUID(n.ClusterUID):
		return &store.FieldError{
			Field: "clusterUID", Accepted: "the UID of the cluster's namespace kube-system, 1 to 128 printable characters, for an agent's token",
		}
	case role != RoleAgent && n.ClusterUID != "":
		return &store.FieldError{Field: "clusterUID", Accepted: "omitted, except for an agent's token"}
	case n.ClusterName != "" && (role != RoleAgent || !tokenName.MatchString(n.ClusterName)):
		return &store.FieldError{
			Field: "clusterName", Accepted: "1 to 63 letters, digits and ._@-, beginning with a letter or digit, for an agent's token only",
		}
	}
	return nil
}

// checkValidity checks the end of the token and its renewal.
func (n NewToken) checkValidity(role Role, now time.Time) error {
	switch {
	case n.ExpiresAt != nil && !n.ExpiresAt.After(now):
		return &store.FieldError{Field: "expiresAt", Accepted: "a time in the future"}
	case n.ExpiresAt != nil && n.ExpiresAt.Year() > 9999:
		return &store.FieldError{Field: "expiresAt", Accepted: "a year up to 9999"}
	case n.Renewable && (role != RoleAgent || n.ExpiresAt == nil):
		return &store.FieldError{Field: "renewable", Accepted: "omitted, except for an agent's token that expires"}
	}
	return nil
}

// issue creates a token. The secret is stored nowhere else.
func issue(ctx context.Context, s TokenStore, wanted NewToken, now time.Time) (token store.Token, secret string, err error) {
	if err := wanted.check(now); err != nil {
		return store.Token{}, "", err
	}
	secret = newToken(wanted.Role)
	key := digestOf(secret)
	token, err = s.CreateToken(ctx, store.Token{
		Name: wanted.Name, Role: string(wanted.Role), ClusterUID: wanted.ClusterUID, ClusterName: wanted.ClusterName,
		CreatedAt: now, ExpiresAt: wanted.ExpiresAt, Renewal: store.TokenRenewal{Renewable: wanted.Renewable},
	}, key[:])
	return token, secret, err
}
