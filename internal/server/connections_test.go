package server

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/server/auth"
)

// connectionFrom is a connection of a client at an address.
type connectionFrom struct {
	net.Conn
	address string
	closed  bool
}

func (c *connectionFrom) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.address))
}

func (c *connectionFrom) Close() error {
	c.closed = true
	return nil
}

// addFrom counts connections of an address.
func addFrom(c *connections, n int, address string) (added []*connection) {
	for range n {
		added = append(added, c.add(&connectionFrom{address: address}))
	}
	return added
}

func wasClosed(c *connection) bool {
	from, ok := c.Conn.(*connectionFrom)
	return ok && from.closed
}

func countClosed(all []*connection) (n int) {
	for _, c := range all {
		if wasClosed(c) {
			n++
		}
	}
	return n
}

const (
	firstAddress  = "192.0.2.1:1000"
	secondAddress = "192.0.2.2:1000"
)

func TestConnections_Unauthenticated_OldestIsClosed(t *testing.T) {
	c := newConnections(10, nil)
	all := addFrom(c, maxUnauthenticatedConnections+3, firstAddress)
	for i, opened := range all {
		if closed := wasClosed(opened); closed != (i < 3) {
			t.Errorf("connection %d: closed is %t", i, closed)
		}
	}
}

func TestConnections_ManyOfOneAddress_CloseNoneOfAnother(t *testing.T) {
	c := newConnections(10, nil)
	few := addFrom(c, maxUnauthenticatedConnectionsPerAddress, firstAddress)
	many := addFrom(c, 2*maxUnauthenticatedConnections, secondAddress)
	if n := countClosed(few); n != 0 {
		t.Errorf("%d connections with the share of an address were closed, want 0", n)
	}
	if n, want := countClosed(many), maxUnauthenticatedConnections+maxUnauthenticatedConnectionsPerAddress; n != want {
		t.Errorf("%d connections of the other address were closed, want %d", n, want)
	}
}

// An attacker with many addresses does not close what arrived last at the address of a load balancer.
func TestConnections_ManyAddresses_OldestIsClosed(t *testing.T) {
	c := newConnections(10, nil)
	var attacker []*connection
	for i := range maxUnauthenticatedConnections {
		address := net.TCPAddr{IP: net.IPv4(10, 0, byte(i/256), byte(i)), Port: 1}
		attacker = append(attacker, addFrom(c, 1, address.String())...)
	}
	honest := addFrom(c, 3, firstAddress)
	if countClosed(honest) != 0 || countClosed(attacker) != 3 || !wasClosed(attacker[2]) {
		t.Errorf("%d honest connections were closed, want 0, and %d others, want the oldest 3", countClosed(honest), countClosed(attacker))
	}
}

func TestConnections_Authenticated_AreLimited(t *testing.T) {
	const perPerson = 3
	agent, viewer, admin := sender{"cluster:a", auth.RoleAgent}, sender{"viewer", auth.RoleViewer}, sender{"admin", auth.RoleAdmin}
	for name, tt := range map[string]struct {
		by   sender
		want int
	}{
		"an agent":         {agent, maxAuthenticatedPerAgent},
		"a viewer":         {viewer, perPerson},
		"an administrator": {admin, perPerson},
	} {
		t.Run(name, func(t *testing.T) {
			c := newConnections(perPerson, nil)
			all := addFrom(c, 100, firstAddress)
			for _, opened := range all {
				c.authenticate(opened, tt.by)
				c.authenticate(opened, tt.by) // the next request
			}
			addFrom(c, maxUnauthenticatedConnections, firstAddress)
			if n, want := countClosed(all), len(all)-tt.want; n != want || countClosed(all[:tt.want]) != 0 {
				t.Errorf("%d connections of 100 were closed, want the last %d", n, want)
			}
			for _, opened := range all {
				_ = opened.Close()
				_ = opened.Close() // as net/http does
			}
			if c.authenticated != 0 || len(c.bySender) != 0 || len(c.byRole) != 0 {
				t.Errorf("%d authenticated connections after the end of all, want 0", c.authenticated)
			}
		})
	}
}

func TestConnections_Authenticated_RolesHaveShares(t *testing.T) {
	c := newConnections(1, nil)
	authenticate := func(n int, role auth.Role) {
		for i := range n {
			opened := addFrom(c, 1, firstAddress)[0]
			c.authenticate(opened, sender{string(role) + strconv.Itoa(i), role})
		}
	}
	authenticate(2*maxAuthenticatedPerRole, auth.RoleViewer)
	if c.authenticated != maxAuthenticatedPerRole {
		t.Errorf("%d connections of viewers are authenticated, want %d", c.authenticated, maxAuthenticatedPerRole)
	}
	authenticate(2*maxAuthenticated, auth.RoleAgent)
	if c.authenticated != maxAuthenticated {
		t.Errorf("%d connections are authenticated, want %d", c.authenticated, maxAuthenticated)
	}
}

// A connection counts as authenticated after a request with a credential.
func TestServer_Connections_AreCounted(t *testing.T) {
	for _, protocol := range []string{"HTTP/2.0", "HTTP/1.1"} {
		t.Run(protocol, func(t *testing.T) {
			s := startTLS(t, "sqlite:"+filepath.Join(t.TempDir(), "rows.db"), nil)
			viewer := s.token(t, "--role=viewer", "--name=viewer")
			client := s.newClient(t)
			if transport, ok := client.Transport.(*http.Transport); ok {
				transport.ForceAttemptHTTP2 = protocol == "HTTP/2.0"
			}
			get := func(client *http.Client, path, bearer string) string {
				t.Helper()
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Authorization", "Bearer "+bearer)
				resp, err := client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = resp.Body.Close() }()
				text, err := io.ReadAll(resp.Body)
				if err != nil {
					t.Fatal(err)
				}
				return string(text)
			}
			expect := func(authenticated, unauthenticated int) {
				t.Helper()
				got := regexp.MustCompile(`controlplane_connections{.*`).FindAllString(get(s.client, "/metrics", viewer), -1)
				want := []string{
					fmt.Sprintf(`controlplane_connections{authenticated="false"} %d`, unauthenticated),
					fmt.Sprintf(`controlplane_connections{authenticated="true"} %d`, authenticated),
				}
				if !slices.Equal(got, want) {
					t.Errorf("the metrics are %q, want %q", got, want)
				}
			}
			get(client, "/healthz", "")
			expect(1, 1)
			get(client, "/v0/workloads", "none")
			expect(1, 1)
			get(client, "/v0/workloads", viewer)
			expect(2, 0)
		})
	}
}

// A client without a credential holds connections without a request. They do not delay the stop of the server.
func TestServer_Stop_ClosesUnauthenticatedConnections(t *testing.T) {
	s := startTLS(t, "sqlite:"+filepath.Join(t.TempDir(), "rows.db"), nil)
	for _, protocol := range []string{"h2", "http/1.1"} {
		dialer := &tls.Dialer{Config: trust(s.authority.PEM())}
		dialer.Config.NextProtos = []string{protocol}
		held, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "https://"))
		if err != nil {
			t.Fatal(err)
		}
		defer held.Close() //nolint:errcheck // the server has closed it
	}
	begin := time.Now()
	s.stop()
	if took := time.Since(begin); took > drainTimeout*4/5 {
		t.Errorf("the server took %v to stop, want at most %v", took, drainTimeout*4/5)
	}
}
