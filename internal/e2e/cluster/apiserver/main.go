// Command apiserver runs a Kubernetes API server and its etcd for the tests of another process. Package
// internal/testing/apiserver is its client: it writes requests to standard input, and reads one answer for each from
// standard output, both as JSON on a line. The first answer comes without a request, once the API server is ready.
//
// The end of standard input stops everything, so nothing outlives the test process.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/threeport/threeport-agent/internal/e2e/cluster"
)

// request asks for one operation.
type request struct {
	// Operation is "user", "kill" or "restart".
	Operation string
	// User and Groups are for a client certificate.
	User   string
	Groups []string
}

// answer has the path of a user's kubeconfig, or an error.
type answer struct {
	Kubeconfig, Error string
}

func main() {
	if err := run(context.Background(), json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "apiserver:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, in *json.Decoder, out *json.Encoder) (err error) {
	c, err := cluster.Start(ctx, cluster.Options{Components: cluster.APIOnly(), Log: os.Stderr})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	next := request{Operation: "user", User: "administrator", Groups: []string{"system:masters"}}
	for {
		if err := out.Encode(handle(ctx, c, next)); err != nil {
			return err
		}
		next = request{}
		if err := in.Decode(&next); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// handle does what a request asks for.
func handle(ctx context.Context, c *cluster.Cluster, r request) (a answer) {
	var err error
	switch r.Operation {
	case "user":
		a.Kubeconfig, _, err = c.User(r.User, r.Groups...)
	case "kill":
		err = c.Kill(cluster.APIServer)
	case "restart":
		err = c.Restart(ctx, cluster.APIServer)
	default:
		err = fmt.Errorf("unknown operation %q: use user, kill or restart", r.Operation)
	}
	if err != nil {
		a.Error = err.Error()
	}
	return a
}
