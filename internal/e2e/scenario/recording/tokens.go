package recording

import (
	"fmt"
	"regexp"
	"strings"
)

// Texts that differ in each run and do not show a state.
var (
	// token matches a possible name or UID.
	token = regexp.MustCompile(`[A-Za-z0-9-]+`)
	// randomSuffix is the end of a generated name (k8s.io/apimachinery/pkg/util/rand: no vowels, no 0, 1 and 3).
	randomSuffix = regexp.MustCompile(`^[bcdfghjklmnpqrstvwxz2456789]{5}$`)

	accessVolume = regexp.MustCompile(`\bkube-api-access-[a-z0-9]{5}\b`)
	scheduler    = regexp.MustCompile(`^default-scheduler-.+$`)
	address      = regexp.MustCompile(`\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b`)
	uuid         = regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)
	digest       = regexp.MustCompile(`\bsha256:[0-9a-f]{64}\b`)
	identifier   = regexp.MustCompile(`\b[0-9a-f]{64}\b`)
	// certificate is a certificate, a request for one or a key in PEM, encoded in base64.
	certificate = regexp.MustCompile(`^LS0tLS1CRUdJTi[A-Za-z0-9+/=]+$`)
	// folder is a temporary folder of an operator.
	folder = regexp.MustCompile(`(?:/[\w.-]+)+/operators-\d+(?:/[a-z-]+-\d{6,})*`)
	// measured is a duration that was measured, not set.
	measured = regexp.MustCompile(`\b(?:\d+m)?\d+\.\d{3,}m?s\b`)
)

// Their replacements in a recording.
const (
	theAccessVolume = "kube-api-access-00000"
	theScheduler    = "default-scheduler"
	theDigest       = "sha256:image"
	theFolder       = "/tmp"
	theDuration     = "1s"
	theCertificate  = "LS0tLS1CRUdJTi4uLg==" // -----BEGIN...
)

// dictionary replaces tokens, and addresses.
type dictionary struct {
	tokens, addresses map[string]string
}

func newDictionary() dictionary {
	return dictionary{tokens: map[string]string{}, addresses: map[string]string{}}
}

// rewrite replaces the values in the dictionary, and those with a fixed replacement.
func (d dictionary) rewrite(text string) string {
	text = certificate.ReplaceAllString(text, theCertificate)
	text = digest.ReplaceAllString(text, theDigest)
	text = folder.ReplaceAllString(text, theFolder)
	text = measured.ReplaceAllString(text, theDuration)
	text = accessVolume.ReplaceAllString(text, theAccessVolume)
	text = scheduler.ReplaceAllString(text, theScheduler)
	text = address.ReplaceAllStringFunc(text, d.address)
	return token.ReplaceAllStringFunc(text, func(t string) string {
		if replaced, ok := d.tokens[t]; ok {
			return replaced
		}
		return t
	})
}

// Addresses of a recording, from the ranges for documentation (RFC 5737).
const (
	podAddress     = "198.51.100.%d"
	serviceAddress = "203.0.113.%d"
	nodeAddresses  = "192.0.2."
)

// address replaces a known address, or one that may be of a deleted pod. It keeps addresses of the node and of manifests.
func (d dictionary) address(ip string) string {
	if replaced, ok := d.addresses[ip]; ok {
		return replaced
	}
	if strings.HasPrefix(ip, "10.") {
		return fmt.Sprintf(podAddress, 0)
	}
	return ip
}

// number replaces each match by a text with a number, in the order of first appearance.
func number(text string, match *regexp.Regexp, format string) string {
	seen := map[string]string{}
	return match.ReplaceAllStringFunc(text, func(found string) string {
		if _, ok := seen[found]; !ok {
			seen[found] = fmt.Sprintf(format, len(seen)+1)
		}
		return seen[found]
	})
}
