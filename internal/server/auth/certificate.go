package auth

import (
	"crypto/x509"
	"net/http"
	"strings"
	"time"
)

// The organizations of a client certificate's subject that say its role. An agent's common name is its cluster's UID.
const (
	groupPrefix  = "threeport:"
	groupAgents  = groupPrefix + "agents"
	groupViewers = groupPrefix + "viewers"
	groupAdmins  = groupPrefix + "admins"
)

// maxClusterUID is that of [controlplane.Agent].
const maxClusterUID = 128

// clientCertificate is the one that the TLS handshake verified; nil if there was none. One that was only sent proves
// nothing.
func verifiedCertificate(r *http.Request) *x509.Certificate {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return nil
	}
	return r.TLS.VerifiedChains[0][0]
}

// ofCertificate is the principal of a verified certificate. A group that it does not know is refused, and not taken for
// none: a slip in a group's name must not make an administrator.
func (a *Authenticator) certificatePrincipal(cert *x509.Certificate, now time.Time) (Principal, error) {
	if now.After(cert.NotAfter) { // a connection may outlive it
		return Principal{}, unauthenticated("the client certificate has expired")
	}
	p := Principal{Name: printable(cert.Subject.CommonName), Credential: CredentialCertificate}
	groups := threeportGroups(cert)
	switch {
	case len(groups) == 0:
		p.Role, p.roleByDefault = a.config.CertificateRole, true
	case len(groups) > 1:
		return Principal{}, unauthenticated("the client certificate has several organizations that begin with " + groupPrefix)
	case groups[0] == groupAgents:
		if !isClusterUID(cert.Subject.CommonName) {
			return Principal{}, unauthenticated("the common name of an agent's certificate has to be its cluster's UID")
		}
		p.Role, p.ClusterUID = RoleAgent, cert.Subject.CommonName
	case groups[0] == groupViewers:
		p.Role = RoleViewer
	case groups[0] == groupAdmins:
		p.Role = RoleAdmin
	default:
		return Principal{}, unauthenticated("the client certificate has an unknown organization that begins with " + groupPrefix)
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

// isClusterUID accepts what [controlplane.Agent] does, without what has no place in an identifier.
func isClusterUID(uid string) bool {
	return isASCIIWord(uid, maxClusterUID)
}

// isWord accepts one word of ASCII, of so many bytes at most.
func isASCIIWord(text string, longest int) bool {
	return text != "" && len(text) <= longest && strings.IndexFunc(text, notGraphicASCII) < 0
}

// printable makes a name of somebody else's fit for a record: short, and ASCII without control characters.
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
