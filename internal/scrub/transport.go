// Package scrub makes HTTP transports that leave as little as possible of what passes through them behind
// in memory. What an answer contains beyond what the agent keeps, such as the data of a Secret, would
// otherwise stay in buffers that are free but not overwritten, and show in a dump of the process.
package scrub

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// idleConnsPerHost is how many connections are kept for reuse: at least as many as there are concurrent
// senders.
const idleConnsPerHost = 32

// NewTransport returns a transport for HTTP/1.1, with TLS if a configuration is given. It has no HTTP/2 and no
// decompression, whose buffers outlive an answer; its read buffer is too small to hold much, so that a body
// goes straight into the buffer of whoever reads it; and its connections clear what TLS decrypted.
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

// conn clears the buffer that it is to read into before it reads. crypto/tls decrypts records in the buffer
// that it read them into, and reads the next ones into the same place; and it asks for the next ones as soon
// as a record is used up. So what was decrypted is gone when the connection waits.
type conn struct{ net.Conn }

func (c conn) Read(b []byte) (int, error) {
	clear(b)
	return c.Conn.Read(b)
}
