package informers

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/threeport/threeport-agent/internal/redact"
	"github.com/threeport/threeport-agent/internal/scrub"
)

// isSecret reports whether a kind is read as metadata only because it is confidential. All reads ask it: watches in
// [informerFactory.create], and single reads in [Clients.fetch]. Both use the client for Secrets then.
// [observe.Trim] is a second barrier: it removes the data of a Secret from an object that leaves the cluster.
func isSecret(kind schema.GroupKind) bool { return kind == secretKind.GroupKind() }

// metadataClient returns the metadata client for a resource.
func (c *Clients) metadataClient(gvr schema.GroupVersionResource) metadata.Interface {
	if gvr.GroupResource() == (schema.GroupResource{Resource: "secrets"}) {
		return c.secrets
	}
	return c.metadata
}

// Connections for Secrets use HTTP/1.1, which has no pings. The agent therefore asks the API server to end each watch of
// Secrets after secretsWatch, and treats the connection as broken if the answer has not ended after secretsTimeout.
const (
	secretsWatch   = 30 * time.Second
	secretsTimeout = secretsWatch + 10*time.Second
)

// shortWatch limits each watch to [secretsWatch].
type shortWatch struct{ metadata.ResourceInterface }

func (s shortWatch) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.TimeoutSeconds = new(int64(secretsWatch / time.Second))
	return s.ResourceInterface.Watch(ctx, options)
}

// newSecretsClient returns a metadata client for Secrets. Metadata excludes their data, but tools that apply manifests
// keep a copy of the manifest in an annotation, which the API server cannot leave out. The client redacts these
// annotations as they arrive, before anything decodes them.
func newSecretsClient(config *rest.Config) (metadata.Interface, error) {
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("TLS for Secrets: %w", err)
	}
	transport, err := rest.HTTPWrappersForConfig(config, redactingTransport{scrub.NewTransport(tlsConfig)})
	if err != nil {
		return nil, fmt.Errorf("transport for Secrets: %w", err)
	}
	client, err := metadata.NewForConfigAndClient(config, &http.Client{Transport: transport})
	if err != nil {
		return nil, fmt.Errorf("metadata client for Secrets: %w", err)
	}
	return client, nil
}

// redactingTransport accepts metadata in JSON only, redacts copies of manifests, and cancels an answer after
// [secretsTimeout].
type redactingTransport struct{ next http.RoundTripper }

func (t redactingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(req.Context(), secretsTimeout)
	req = req.Clone(ctx)
	var accepted []string
	for kind := range strings.SplitSeq(req.Header.Get("Accept"), ",") {
		if strings.HasPrefix(kind, "application/json;as=PartialObjectMetadata") {
			accepted = append(accepted, kind)
		}
	}
	req.Header.Set("Accept", strings.Join(accepted, ","))
	answer, err := t.next.RoundTrip(req)
	if err != nil {
		cancel()
		return nil, err
	}
	answer.Body = &redactor{body: answer.Body, cancel: cancel}
	return answer, nil
}

// redactor overwrites, in a stream of JSON, the values of annotations that hold a copy of the object's manifest. The JSON
// keeps its length and stays valid.
type redactor struct {
	body   io.ReadCloser
	cancel context.CancelFunc
	state  redactState
	// name is the beginning of the current JSON string, up to longestName bytes.
	name    []byte
	escaped bool
}

type redactState int

const (
	outside   redactState = iota // between strings
	inString                     // in a string that may be an annotation's name
	afterName                    // between the name of a redacted annotation and its value
	inValue                      // in a value that is redacted
)

// longestName bounds the remembered part of a string: the longest name of an annotation.
const longestName = 253 + len("/") + 63

func (r *redactor) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	for i := range p[:n] {
		p[i] = r.next(p[i])
	}
	return n, err
}

func (r *redactor) Close() error {
	defer r.cancel()
	return r.body.Close()
}

// next returns the replacement of a byte.
func (r *redactor) next(c byte) byte {
	switch r.state {
	case outside:
		if c == '"' {
			r.state, r.name, r.escaped = inString, r.name[:0], false
		}
	case inString:
		r.continueString(c)
	case afterName:
		if c == '"' {
			r.state, r.escaped = inValue, false
		} else if !bytes.ContainsRune([]byte(": \t\r\n"), rune(c)) {
			r.state = outside
		}
	case inValue:
		if c == '"' && !r.escaped {
			r.state = outside
			return c
		}
		r.escaped = c == '\\' && !r.escaped
		return '-'
	}
	return c
}

// continueString continues a string. The string is a name only if a colon follows.
func (r *redactor) continueString(c byte) {
	switch {
	case c == '"' && !r.escaped:
		r.state = outside
		if r.isCopy() {
			r.state = afterName
		}
	case len(r.name) < longestName:
		r.name = append(r.name, c)
	}
	r.escaped = c == '\\' && !r.escaped
}

// isCopy reports whether the string is the name of an annotation with a copy. Managed fields have such names behind "f:".
func (r *redactor) isCopy() bool {
	return !bytes.HasPrefix(r.name, []byte("f:")) && redact.IsManifestCopy(string(r.name))
}
