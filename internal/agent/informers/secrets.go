package informers

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/scrub"
)

// How long a connection that Secrets are read through may say nothing. It speaks HTTP/1.1, which has no pings: the API
// server is asked to end each watch soon, and an answer that has not ended soon after comes from nowhere.
const (
	secretsWatch  = 30 * time.Second
	secretsAnswer = secretsWatch + 10*time.Second
)

// shortly watches Secrets, for [secretsWatch] at a time.
type shortly struct{ metadata.ResourceInterface }

func (s shortly) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.TimeoutSeconds = new(int64(secretsWatch / time.Second))
	return s.ResourceInterface.Watch(ctx, options)
}

// newSecretsClient returns a metadata client that Secrets are read with. Their data is not asked for. But
// tools that apply manifests keep a copy of them in an annotation, which is metadata, and which the API server
// cannot be asked to leave out: it is blotted out as it comes in, before anything decodes it.
func newSecretsClient(config *rest.Config) (metadata.Interface, error) {
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("TLS for Secrets: %w", err)
	}
	transport, err := rest.HTTPWrappersForConfig(config, blotting{scrub.NewTransport(tlsConfig)})
	if err != nil {
		return nil, fmt.Errorf("transport for Secrets: %w", err)
	}
	client, err := metadata.NewForConfigAndClient(config, &http.Client{Transport: transport})
	if err != nil {
		return nil, fmt.Errorf("metadata client for Secrets: %w", err)
	}
	return client, nil
}

// blotting asks for metadata as JSON, and for nothing else, and blots out copies of manifests. It ends an answer that
// has not ended in time.
type blotting struct{ next http.RoundTripper }

func (b blotting) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(req.Context(), secretsAnswer)
	req = req.Clone(ctx)
	var accepted []string
	for kind := range strings.SplitSeq(req.Header.Get("Accept"), ",") {
		if strings.HasPrefix(kind, "application/json;as=PartialObjectMetadata") {
			accepted = append(accepted, kind)
		}
	}
	req.Header.Set("Accept", strings.Join(accepted, ","))
	answer, err := b.next.RoundTrip(req)
	if err != nil {
		cancel()
		return nil, err
	}
	answer.Body = &blotter{body: answer.Body, cancel: cancel}
	return answer, nil
}

// blotter overwrites, in the JSON that passes through it, the values of annotations that hold a copy of the
// object's manifest. The JSON keeps its length and stays valid.
type blotter struct {
	body   io.ReadCloser
	cancel context.CancelFunc
	state  blotState
	// name is the JSON string that is being read, as far as it may matter.
	name    []byte
	escaped bool
}

type blotState int

const (
	outside   blotState = iota // between strings
	inString                   // in one that may be an annotation's name
	afterName                  // behind such a name, before its value
	inValue                    // in a value that is overwritten
)

// longestName bounds what is remembered of a string.
const longestName = 128

func (b *blotter) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	for i := range p[:n] {
		p[i] = b.pass(p[i])
	}
	return n, err
}

func (b *blotter) Close() error {
	defer b.cancel()
	return b.body.Close()
}

// pass returns what a byte becomes.
func (b *blotter) pass(c byte) byte {
	switch b.state {
	case outside:
		if c == '"' {
			b.state, b.name, b.escaped = inString, b.name[:0], false
		}
	case inString:
		b.passInString(c)
	case afterName:
		if c == '"' {
			b.state, b.escaped = inValue, false
		} else if !bytes.ContainsRune([]byte(": \t\r\n"), rune(c)) {
			b.state = outside
		}
	case inValue:
		if c == '"' && !b.escaped {
			b.state = outside
			return c
		}
		b.escaped = c == '\\' && !b.escaped
		return '-'
	}
	return c
}

// passInString reads on in a string, which is a name only if what follows it is a colon.
func (b *blotter) passInString(c byte) {
	switch {
	case c == '"' && !b.escaped:
		b.state = outside
		if b.isCopy() {
			b.state = afterName
		}
	case len(b.name) < longestName:
		b.name = append(b.name, c)
	}
	b.escaped = c == '\\' && !b.escaped
}

func (b *blotter) isCopy() bool { return slices.Contains(observe.ManifestCopies, string(b.name)) }
