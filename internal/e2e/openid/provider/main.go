// Command provider is a provider of OpenID Connect on loopback, for tests of single sign-on. It uses zitadel/oidc, which the
// OpenID Foundation has certified, with the log-in page and the storage of its example, and adds groups.
//
// It has its own module, so that the agent and the control-plane API do not depend on its packages. It prints its issuer,
// and runs until it is killed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

func main() {
	if err := run(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "provider:", err)
		os.Exit(1)
	}
}

func run() error {
	id := flag.String("client-id", "", "the client's `name`")
	secret := flag.String("client-secret", "", "its `secret`")
	redirect := flag.String("redirect-url", "", "where browsers go back to")
	known := people{}
	flag.Func("person", "somebody who may log in, with their `name` as password too, and their groups: NAME=GROUP,GROUP", known.add)
	flag.Parse()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	issuer := fmt.Sprintf("http://localhost:%d", listener.Addr().(*net.TCPAddr).Port)
	client := storage.WebClient(*id, *secret, *redirect)
	kept := memory{storage.NewStorageWithClients(known, map[string]*storage.Client{*id: client}), known}
	server := &http.Server{
		Handler:           exampleop.SetupServer(issuer, kept, slog.New(slog.DiscardHandler), false),
		ReadHeaderTimeout: time.Minute,
	}
	fmt.Printf("{\"url\":%q}\n", issuer) // as the project's other servers have it in their logs
	return server.Serve(listener)
}

// people are those who may log in, by name, with their groups. A name is the subject, too.
type people map[string][]string

func (p people) add(text string) error {
	name, groups, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return errors.New("accepted is NAME=GROUP,GROUP")
	}
	p[name] = strings.Split(groups, ",")
	return nil
}

// GetUserByID finds somebody by their subject.
func (p people) GetUserByID(id string) *storage.User {
	if _, ok := p[id]; !ok {
		return nil
	}
	return &storage.User{ID: id, Username: id, Password: id, Email: id + "@example.com", EmailVerified: true}
}

// GetUserByUsername finds somebody by the name that they log in with.
func (p people) GetUserByUsername(name string) *storage.User { return p.GetUserByID(name) }

// ExampleClientID returns the client of the example; the tests do not use it.
func (p people) ExampleClientID() string { return storage.ServiceUserID }

// memory is the example's, with groups in ID tokens.
type memory struct {
	*storage.Storage
	people people
}

// GetClientByClientID returns a client whose ID tokens have all claims of a person.
func (m memory) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	found, err := m.Storage.GetClientByClientID(ctx, id)
	return client{found}, err
}

// SetUserinfoFromRequest sets the claims of an ID token.
func (m memory) SetUserinfoFromRequest(ctx context.Context, info *oidc.UserInfo, request op.IDTokenRequest, scopes []string) error {
	if err := m.Storage.SetUserinfoFromRequest(ctx, info, request, scopes); err != nil {
		return err
	}
	info.AppendClaims("groups", m.people[request.GetSubject()])
	return nil
}

type client struct{ op.Client }

// IDTokenUserinfoClaimsAssertion puts all claims of a person into the ID token.
func (client) IDTokenUserinfoClaimsAssertion() bool { return true }
