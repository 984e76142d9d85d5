package auth

import (
	"context"
	"fmt"
)

// Role defines the permissions of a principal: see [Rule].
type Role string

// All roles.
const (
	// RoleAgent reports one cluster, and reads only what that needs.
	RoleAgent Role = "agent"
	// RoleViewer reads everything but tokens and the audit log.
	RoleViewer Role = "viewer"
	// RoleAdmin has all permissions.
	RoleAdmin Role = "admin"
)

// ParseRole parses the name of a role.
func ParseRole(name string) (Role, error) {
	switch role := Role(name); role {
	case RoleAgent, RoleViewer, RoleAdmin:
		return role, nil
	default:
		return "", fmt.Errorf("%q is not a role: use %s, %s or %s", name, RoleAdmin, RoleViewer, RoleAgent)
	}
}

// Credential is a kind of credential.
type Credential string

// All kinds of credentials.
const (
	// CredentialNone is used while authentication is disabled.
	CredentialNone        Credential = "none"
	CredentialCertificate Credential = "certificate"
	CredentialToken       Credential = "token"
	CredentialSession     Credential = "session"
	// CredentialSignOn is the session of a person who logged in by single sign-on.
	CredentialSignOn Credential = "sso"
)

// Principal is the authenticated caller. The zero Principal has no permissions.
type Principal struct {
	// Name is the name of a token or the common name of a certificate, for display: it need not be unique. For single
	// sign-on it is the person's subject, a space, and their name.
	Name string
	// Subject identifies a person of single sign-on permanently; empty for other credentials. People may change their name.
	Subject string
	Role    Role
	// ClusterUID is the cluster of an agent; empty for other roles.
	ClusterUID string
	// ClusterName is the name of the cluster if the token of an agent fixes it; else empty.
	ClusterName string
	Credential  Credential

	// roleByDefault reports that the role is Config.CertificateRole.
	roleByDefault bool
}

// String is the kind and name of the credential, as in the audit log.
func (p Principal) String() string { return string(p.Credential) + ":" + p.Name }

// LimitKey identifies the principal for limits. The agents of a cluster share its limits, and so do the credentials of the
// same name and role. A person of single sign-on has the same limits under each name.
func (p Principal) LimitKey() string {
	if p.Role == RoleAgent {
		return "cluster:" + p.ClusterUID
	}
	if p.Subject != "" {
		return string(p.Role) + ":person " + p.Subject
	}
	return string(p.Role) + ":" + p.Name
}

// limitKeyAt is LimitKey, and for a role by default also the client's address: agents of v0 share a certificate.
func (p Principal) limitKeyAt(remote string) string {
	if p.roleByDefault {
		return p.LimitKey() + " at " + ClientAddress(remote)
	}
	return p.LimitKey()
}

// MayReportFor reports whether the principal may send report sets of a cluster.
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

// principalKey is the context key of the principal.
type principalKey struct{}

// PrincipalFrom returns the principal of a request's context. It is the zero Principal if the request did not pass
// [Authenticator.Middleware] or is public.
func PrincipalFrom(ctx context.Context) Principal {
	p, _ := ctx.Value(principalKey{}).(Principal)
	return p
}

// WithPrincipal returns a context with the principal.
func WithPrincipal(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}
