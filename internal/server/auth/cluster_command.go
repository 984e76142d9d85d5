package auth

import (
	"context"
	_ "embed"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"text/template"
	"time"

	"github.com/threeport/threeport-agent/internal/server/store"
)

const clusterUsage = `usage: controlplane cluster add NAME --uid UID --server URL [--ca-file FILE] [--chart CHART] [--expires WHEN] [--renewable=false]
`

// installation makes the script that installs an agent with its token.
//
//go:embed cluster_install.sh
var installation string

// RunClusterCommand runs "controlplane cluster" with the given arguments and returns the exit code: 0, 1 for a failure, or 2 for wrong
// arguments. The script on stdout has the secret of the new token.
func RunClusterCommand(ctx context.Context, args []string, s CommandStore, stdout, stderr io.Writer) int {
	c := command{store: s, stdout: stdout, stderr: stderr, now: time.Now(), usage: clusterUsage}
	return c.exitCode(c.runCluster(ctx, args))
}

func (c command) runCluster(ctx context.Context, args []string) error {
	switch {
	case len(args) > 0 && isHelp(args[0]):
		_, _ = io.WriteString(c.stdout, c.usage)
		return nil
	case len(args) == 0 || args[0] != "add":
		return usagef("controlplane cluster: use add")
	case len(args) == 1 || strings.HasPrefix(args[1], "-") && !isHelp(args[1]):
		return usagef("controlplane cluster add: the name of the cluster is missing")
	}
	return c.addCluster(ctx, args[1], args[1:])
}

// newCluster has the values of the script.
type newCluster struct {
	Name, UID, Server, Chart string
	Token, CA                string // in base64
	Expires                  string
}

// addCluster creates a token for the agent of a cluster, and prints the script that installs the agent with it.
func (c command) addCluster(ctx context.Context, name string, args []string) error {
	out := newCluster{Name: name}
	var caFile, expires string
	var renewable bool
	flags := flag.NewFlagSet("controlplane cluster add", flag.ContinueOnError)
	flags.StringVar(&out.UID, "uid", "", "the `UID` of the cluster's namespace kube-system")
	flags.StringVar(&out.Server, "server", "", "the `URL` of this API for the agent: https://HOST[:PORT]")
	flags.StringVar(&caFile, "ca-file", "", "PEM `file` of the authority of this API's certificate; without it the cluster needs the Secret threeport-agent-ca")
	flags.StringVar(&out.Chart, "chart", "config/charts/threeport-agent", "the Helm `chart` of the agent: a folder, a file or a URL")
	flags.StringVar(&expires, "expires", "90d", "end of validity of the token: a `time` such as 2027-01-31T00:00:00Z, or a duration such as 90d; never if empty")
	flags.BoolVar(&renewable, "renewable", true, "the agent replaces its token before its end, in the Secret of the script")
	if isHelp(name) {
		return c.parse(flags, args, 0)
	}
	if err := c.parse(flags, args[1:], 0); err != nil {
		return err
	}
	if !isServerURL(out.Server) {
		return usagef("--server: must be a URL such as https://threeport.example.org")
	}
	wanted := NewToken{Name: name, Role: RoleAgent, ClusterUID: out.UID, ClusterName: name}
	var err error
	if wanted.ExpiresAt, err = parseExpiry(expires, c.now); err != nil {
		return err
	}
	wanted.Renewable = renewable && wanted.ExpiresAt != nil
	if out.CA, err = readAuthority(caFile); err != nil {
		return fmt.Errorf("--ca-file: %w", err)
	}
	token, secret, err := issue(ctx, c.store, wanted, c.now)
	if invalid, ok := errors.AsType[*store.FieldError](err); ok {
		return usagef("%s: must be %s", map[string]string{"name": "NAME", "clusterName": "NAME", "clusterUID": "--uid", "expiresAt": "--expires"}[invalid.Field], invalid.Accepted)
	}
	if err != nil {
		return fmt.Errorf("create token: %w", err)
	}
	out.Token, out.Expires = base64.StdEncoding.EncodeToString([]byte(secret)), formatTime(token.ExpiresAt, "never")
	if wanted.Renewable {
		out.Expires += ", unless the agent renews it before"
	}
	_, _ = fmt.Fprintf(c.stderr, "Token %d, %s, expires %s. Run the script on stdout with kubectl and helm at that cluster.\n", token.ID, describe(token), out.Expires)
	script := template.Must(template.New("install").Funcs(template.FuncMap{"quote": quoteShell}).Parse(installation))
	if err := script.Execute(c.stdout, out); err != nil {
		return fmt.Errorf("token %d is created, but its script could not be written: %w", token.ID, err)
	}
	return c.recordAudit(ctx, http.MethodPost, "/v0/tokens", http.StatusCreated, token)
}

// isServerURL reports whether an agent with a token can use a URL, and Helm can take it as a value.
func isServerURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "https" && u.Hostname() != "" && u.User == nil && strings.TrimSuffix(u.Path, "/") == "" && u.RawQuery == "" &&
		!strings.ContainsAny(text, `,\{}`)
}

// readAuthority returns a PEM file in base64; empty without a file.
func readAuthority(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	text, err := os.ReadFile(file) //nolint:gosec // the file that the command line names
	if err != nil {
		return "", err
	}
	for rest := text; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		} else if block.Type != "CERTIFICATE" {
			return "", fmt.Errorf("%s has a block of type %s: give a file with certificates only", file, block.Type)
		}
	}
	if block, _ := pem.Decode(text); block == nil {
		return "", fmt.Errorf("%s has no certificate in PEM", file)
	}
	return base64.StdEncoding.EncodeToString(text), nil
}

// quoteShell returns a text as one word of a shell.
func quoteShell(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
