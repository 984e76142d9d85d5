package auth

import (
	"context"
	"fmt"
)

// Role is what a principal may do; rules.go has the details.
type Role string

// The roles.
const (
	// RoleAgent reports of one cluster, and reads what it has to know for that.
	RoleAgent Role = "agent"
	// RoleViewer reads everything but tokens and audit records.
	RoleViewer Role = "viewer"
	// RoleAdmin does everything.
	RoleAdmin Role = "admin"
)

// ParseRole reads a role's name.
func ParseRole(name string) (Role, error) {
	switch role := Role(name); role {
	case RoleAgent, RoleViewer, RoleAdmin:
		return role, nil
	default:
		return "", fmt.Errorf("unknown role: accepted are %s, %s and %s", RoleAgent, RoleViewer, RoleAdmin)
	}
}

// Credential is what a principal proved itself with.
type Credential string

// The credentials.
const (
	// CredentialNone is everybody's while authentication is disabled.
	CredentialNone        Credential = "none"
	CredentialCertificate Credential = "certificate"
	CredentialToken       Credential = "token"
	CredentialSession     Credential = "session"
	// CredentialSignOn is a session of a person whom the identity provider named.
	CredentialSignOn Credential = "sso"
)

// Principal is who asks. The zero Principal may do nothing.
type Principal struct {
	// Name is a token's name, or a certificate's common name. It is for people: several principals may have the same. Of
	// a person who logged in by single sign-on it is the subject, which is theirs for good, a space, and their name.
	Name string
	Role Role
	// ClusterUID is the cluster of an agent, and empty for any other role.
	ClusterUID string
	Credential Credential

	// assumed is true if the role is not the credential's own, but what the configuration says of certificates
	// without a group.
	roleByDefault bool
}

// String is the principal as audit records have it: what it proved itself with and its name.
func (p Principal) String() string { return string(p.Credential) + ":" + p.Name }

// SpeaksFor tells whether the principal may send what the agent of a cluster has to tell.
func (p Principal) MayReportFor(clusterUID string) bool {
	switch p.Role {
	case RoleAdmin:
		return true
	case RoleAgent:
		return p.ClusterUID != "" && p.ClusterUID == clusterUID
	case RoleViewer:
	}
	return false
}

// principalKey is the key of a context's principal.
type principalKey struct{}

// From is the principal of a request's context; the zero one if the request did not come through
// [Access.Authenticate], or needs none.
func PrincipalFrom(ctx context.Context) Principal {
	p, _ := ctx.Value(principalKey{}).(Principal)
	return p
}

// With returns a context whose principal is p.
func WithPrincipal(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}
