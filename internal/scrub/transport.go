// Package scrub makes HTTP transports that scrub the buffers of answers. An answer may contain more than the agent keeps, such
// as the data of a Secret. Free buffers are not overwritten, so that data would show in a dump of the process.
package scrub

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// idleConnsPerHost is the number of connections that are kept for reuse. It exceeds the default number of concurrent senders.
const idleConnsPerHost = 32

// NewTransport returns a scrubbing transport, with TLS if a configuration is given:
//
//   - It has no HTTP/2 and no decompression, whose buffers outlive an answer.
//   - Its read buffer is too small for a body, so a body is read straight into the buffer of the caller.
//   - Its connections clear decrypted data.
func NewTransport(config *tls.Config) *http.Transport {
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return conn{c}, nil
		},
		TLSClientConfig:       config,
		TLSHandshakeTimeout:   5 * time.Second,
		TLSNextProto:          map[string]func(string, *tls.Conn) http.RoundTripper{},
		ReadBufferSize:        64,
		DisableCompression:    true,
		MaxIdleConns:          2 * idleConnsPerHost,
		MaxIdleConnsPerHost:   idleConnsPerHost,
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
}

// conn clears the destination before each read. crypto/tls decrypts a record in the buffer that it was read into, and reads
// the next record into the same buffer as soon as the first is used up. So decrypted data is cleared before the connection
// waits.
type conn struct{ net.Conn }

func (c conn) Read(b []byte) (int, error) {
	clear(b)
	return c.Conn.Read(b)
}
