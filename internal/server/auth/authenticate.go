package auth

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/threeport/threeport-agent/internal/server/store"
)

// authenticate returns the principal of a request: by its bearer token, else its session, else its client certificate.
// An invalid token is an error even if there are other credentials; an invalid session is ignored. With an error, the
// principal is that of a refused credential that is known, for the audit log, and otherwise empty.
func (a *Authenticator) authenticate(r *http.Request) (Principal, error) {
	if !a.config.Enabled {
		return Principal{Name: "everyone", Role: RoleAdmin, Credential: CredentialNone}, nil
	}
	if given := r.Header["Authorization"]; len(given) > 0 {
		return a.bearerPrincipal(r, given)
	}
	p, found, err := a.sessionPrincipal(r)
	if found || err != nil {
		return p, err
	}
	if a.config.VerifyCertificate != nil && r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		if err := a.config.VerifyCertificate(r.TLS); err != nil {
			return Principal{}, untrustedCertificate(err)
		}
		return a.certificatePrincipal(r.TLS.PeerCertificates[0], a.now())
	}
	return Principal{}, unauthenticated("a client certificate, a bearer token or a session is needed")
}

// bearerPrincipal authenticates by Authorization header (RFC 6750, section 2.1).
func (a *Authenticator) bearerPrincipal(r *http.Request, given []string) (Principal, error) {
	secret, isBearer := bearerSecret(given[0])
	switch {
	case len(given) > 1 || !isBearer:
		return Principal{}, unauthenticated("exactly one Bearer Authorization header is required")
	case !isConfidential(r):
		return Principal{}, unauthenticated("a token requires TLS")
	case !isToken(secret):
		return Principal{}, invalidToken()
	}
	key, now := digestOf(secret), a.now()
	token, err := a.lookUp(r, key, now, a.store.TokenByHash)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return Principal{}, invalidToken()
	case errors.Is(err, errTooManyLookups):
		return Principal{}, tooManyLookups()
	case err != nil:
		return Principal{}, unavailable(fmt.Errorf("read token: %w", err))
	case !isUsable(token, now):
		return tokenPrincipal(token, CredentialToken), invalidToken()
	}
	a.recordUse(token, now)
	return tokenPrincipal(token, CredentialToken), nil
}

// bearerSecret returns the secret of an Authorization header; ok is false for another scheme.
func bearerSecret(header string) (secret string, ok bool) {
	scheme, secret, _ := strings.Cut(header, " ")
	return secret, strings.EqualFold(scheme, "Bearer")
}

// sessionPrincipal authenticates by session cookie. found is false without a valid session.
func (a *Authenticator) sessionPrincipal(r *http.Request) (p Principal, found bool, err error) {
	key, ok := sessionKey(r)
	if !ok {
		return Principal{}, false, nil
	}
	now := a.now()
	token, err := a.lookUp(r, key, now, func(ctx context.Context, hash []byte) (store.Token, error) {
		return a.store.SessionToken(ctx, hash, now)
	})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return Principal{}, false, nil
	case errors.Is(err, errTooManyLookups):
		return Principal{}, false, tooManyLookups()
	case err != nil:
		return Principal{}, false, unavailable(fmt.Errorf("read session: %w", err))
	case !isUsable(token, now):
		return Principal{}, false, nil
	}
	a.recordUse(token, now)
	return tokenPrincipal(token, CredentialSession), true, nil
}

func tokenPrincipal(token store.Token, by Credential) Principal {
	if token.Subject != "" {
		return personPrincipal(token.Subject, token.Name, Role(token.Role))
	}
	return Principal{
		Name: token.Name, Role: Role(token.Role), ClusterUID: token.ClusterUID, ClusterName: token.ClusterName, Credential: by,
	}
}

// isUsable reports whether a stored token is valid now. An inconsistent row is not.
func isUsable(token store.Token, now time.Time) bool {
	role, err := ParseRole(token.Role)
	expires := token.SecretExpiresAt()
	return err == nil && token.RevokedAt == nil &&
		(expires == nil || now.Before(*expires)) &&
		(role == RoleAgent) == (token.ClusterUID != "")
}

// isConfidential reports whether a secret in the request is protected: by TLS, or because it came over loopback.
func isConfidential(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && local.IP.IsLoopback()
}

// Organizations in the subject of a client certificate that define its role. The common name of an agent's certificate
// is the UID of its cluster.
const (
	groupPrefix  = "threeport:"
	groupAgents  = groupPrefix + "agents"
	groupViewers = groupPrefix + "viewers"
	groupAdmins  = groupPrefix + "admins"

	// organizationV0 is the organization of the certificates that Threeport's own control plane issues. It defines no role.
	organizationV0 = "Threeport"
)

// maxClusterUID is the limit of [threeport.Agent].
const maxClusterUID = 128

// certificatePrincipal authenticates by client certificate. It rejects unknown organizations, so that a misspelled group does not
// get the role of Config.CertificateRole.
func (a *Authenticator) certificatePrincipal(cert *x509.Certificate, now time.Time) (Principal, error) {
	p := Principal{Name: printable(cert.Subject.CommonName), Credential: CredentialCertificate}
	groups := threeportGroups(cert)
	switch {
	case now.After(cert.NotAfter): // a connection may outlive the certificate
		return p, unauthenticated("the client certificate has expired")
	case len(groups) == 0 && slices.ContainsFunc(cert.Subject.Organization, isUnknownOrganization):
		return p, unauthenticated("the client certificate has an unknown organization: use " + groupAgents + ", " + groupViewers + " or " + groupAdmins)
	case len(groups) == 0 && a.config.CertificateRole == "":
		return p, certificateWithoutRole()
	case len(groups) == 0:
		p.Role, p.roleByDefault = a.config.CertificateRole, true
	case len(groups) > 1:
		return p, unauthenticated("the client certificate has more than one organization that begins with " + groupPrefix)
	case groups[0] == groupAgents:
		if !IsClusterUID(cert.Subject.CommonName) {
			return p, unauthenticated("the common name of an agent's certificate must be the UID of its cluster")
		}
		p.Role, p.ClusterUID = RoleAgent, cert.Subject.CommonName
	case groups[0] == groupViewers:
		p.Role = RoleViewer
	case groups[0] == groupAdmins:
		p.Role = RoleAdmin
	default:
		return p, unauthenticated("the client certificate has an unknown organization that begins with " + groupPrefix)
	}
	return p, nil
}

func threeportGroups(cert *x509.Certificate) (groups []string) {
	for _, organization := range cert.Subject.Organization {
		if strings.HasPrefix(strings.ToLower(organization), groupPrefix) {
			groups = append(groups, organization)
		}
	}
	return groups
}

func isUnknownOrganization(organization string) bool { return organization != organizationV0 }

// IsClusterUID accepts the UIDs of [threeport.Agent] without spaces and control characters.
func IsClusterUID(uid string) bool {
	return isASCIIWord(uid, maxClusterUID)
}

// isASCIIWord accepts printable ASCII without spaces, up to this number of bytes.
func isASCIIWord(text string, longest int) bool {
	return text != "" && len(text) <= longest && strings.IndexFunc(text, notGraphicASCII) < 0
}

// printable makes foreign text fit for a record: limited, and ASCII without control characters.
func printable(name string) string {
	const longest = 128
	name = strings.Map(func(r rune) rune {
		if r != ' ' && notGraphicASCII(r) {
			return '?'
		}
		return r
	}, name)
	return name[:min(len(name), longest)]
}

func notGraphicASCII(r rune) bool { return r <= ' ' || r > '~' }
