package auth

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/threeport/threeport-agent/internal/server/store"
)

// Exit codes of the command.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

const tokenUsage = `usage: controlplane token create --role agent|viewer|admin --name NAME [--cluster UID [--cluster-name NAME]] [--expires WHEN [--renewable]]
       controlplane token list
       controlplane token revoke ID
`

// CommandStore is the storage of the token command.
type CommandStore interface {
	TokenStore
	AppendAudit(ctx context.Context, record store.AuditRecord) error
}

// usageError reports wrong arguments.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// command is one run of a command on tokens.
type command struct {
	store          CommandStore
	stdout, stderr io.Writer
	now            time.Time
	usage          string
}

// RunTokenCommand runs "controlplane token" with the given arguments and returns the exit code: 0, 1 for a failure, or
// 2 for wrong arguments. Only the secret of a new token is written to stdout, so it can be redirected to a file. A
// running server applies a revocation within [cacheTime].
func RunTokenCommand(ctx context.Context, args []string, s CommandStore, stdout, stderr io.Writer) int {
	c := command{store: s, stdout: stdout, stderr: stderr, now: time.Now(), usage: tokenUsage}
	return c.exitCode(c.run(ctx, args))
}

// exitCode prints an error, and returns the exit code for it.
func (c command) exitCode(err error) int {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return exitDone
	}
	_, _ = fmt.Fprintf(c.stderr, "controlplane: %v\n", err)
	if _, wrong := errors.AsType[*usageError](err); wrong {
		_, _ = io.WriteString(c.stderr, c.usage)
		return exitUsage
	}
	return exitFailed
}

func (c command) run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return usagef("controlplane token: use create, list or revoke")
	}
	if isHelp(args[0]) {
		_, _ = io.WriteString(c.stdout, c.usage)
		return nil
	}
	switch verb, rest := args[0], args[1:]; verb {
	case "create":
		return c.create(ctx, rest)
	case "list":
		return c.list(ctx, rest)
	case "revoke":
		return c.revoke(ctx, rest)
	default:
		return usagef("controlplane token: use create, list or revoke")
	}
}

func isHelp(arg string) bool { return slices.Contains([]string{"help", "-h", "-help", "--help"}, arg) }

// flagOfField are the flags of the fields of [NewToken].
var flagOfField = map[string]string{"name": "name", "role": "role", "clusterUID": "cluster", "clusterName": "cluster-name", "expiresAt": "expires", "renewable": "renewable"}

func (c command) create(ctx context.Context, args []string) error {
	var wanted NewToken
	var role, expires string
	flags := flag.NewFlagSet("controlplane token create", flag.ContinueOnError)
	flags.StringVar(&role, "role", "", "`agent`, viewer or admin")
	flags.StringVar(&wanted.Name, "name", "", "a name for people: `letters`, digits and ._@-")
	flags.StringVar(&wanted.ClusterUID, "cluster", "", "the cluster of an agent: the `UID` of its namespace kube-system")
	flags.StringVar(&wanted.ClusterName, "cluster-name", "", "the name of that cluster in the web UI, whatever its agent reports; the agent's if empty")
	flags.StringVar(&expires, "expires", "", "end of validity: a `time` such as 2027-01-31T00:00:00Z, or a duration such as 12h or 90d; never if empty")
	flags.BoolVar(&wanted.Renewable, "renewable", false, "an agent may replace its token before its end")
	if err := c.parse(flags, args, 0); err != nil {
		return err
	}
	if isToken(role) {
		return usagef("--role: the value is a token, not a role")
	}
	var err error
	if wanted.Role, err = ParseRole(role); err != nil {
		return usagef("--role: %v", err)
	}
	if wanted.ExpiresAt, err = parseExpiry(expires, c.now); err != nil {
		return err
	}
	token, secret, err := issue(ctx, c.store, wanted, c.now)
	if invalid, ok := errors.AsType[*store.FieldError](err); ok {
		return usagef("--%s: must be %s", flagOfField[invalid.Field], invalid.Accepted)
	}
	if err != nil {
		return fmt.Errorf("create token: %w", err)
	}
	_, _ = fmt.Fprintln(c.stdout, secret)
	_, _ = fmt.Fprintf(c.stderr, "Token %d, %s, expires %s. Its secret is not shown again.\n", token.ID, describe(token), formatTime(token.ExpiresAt, "never"))
	return c.recordAudit(ctx, http.MethodPost, "/v0/tokens", http.StatusCreated, token)
}

func (c command) list(ctx context.Context, args []string) error {
	if err := c.parse(flag.NewFlagSet("controlplane token list", flag.ContinueOnError), args, 0); err != nil {
		return err
	}
	tokens, err := c.store.Tokens(ctx)
	if err != nil {
		return fmt.Errorf("list tokens: %w", err)
	}
	table := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "ID\tNAME\tROLE\tCLUSTER\tSTATE\tCREATED\tEXPIRES\tRENEWED\tUSED\tSUBJECT")
	for _, t := range tokens {
		_, _ = fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", t.ID, cmp.Or(t.Name, "-"), t.Role, cmp.Or(t.ClusterUID, "-"), c.state(t),
			formatTime(&t.CreatedAt, "-"), formatTime(t.ExpiresAt, "never"), renewed(t), formatTime(t.UsedAt, "never"), cmp.Or(t.Subject, "-"))
	}
	return table.Flush()
}

func (c command) revoke(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("controlplane token revoke", flag.ContinueOnError)
	if err := c.parse(flags, args, 1); err != nil {
		return err
	}
	id, err := strconv.ParseInt(flags.Arg(0), 10, 64)
	if err != nil {
		return usagef("the ID of a token must be a number: see `controlplane token list`")
	}
	token, err := c.store.RevokeToken(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("there is no token %d: see `controlplane token list`", id)
	}
	if err != nil {
		return fmt.Errorf("revoke token %d: %w", id, err)
	}
	_, _ = fmt.Fprintf(c.stdout, "Token %d, %s, is revoked.\n", id, describe(token))
	return c.recordAudit(ctx, http.MethodDelete, "/v0/tokens/"+strconv.FormatInt(id, 10), http.StatusOK, token)
}

// recordAudit writes the audit record of a changed token, as for a request to the API.
func (c command) recordAudit(ctx context.Context, method, path string, code int, token store.Token) error {
	err := c.store.AppendAudit(ctx, store.AuditRecord{
		At: c.now, Principal: "command:controlplane", Role: string(RoleAdmin), Method: method, Path: path, Code: code,
		Object: tokenObject(token).stored(),
	})
	if err != nil {
		return fmt.Errorf("done, but the audit record could not be written: %w", err)
	}
	return nil
}

func (c command) state(t store.Token) string {
	switch {
	case t.RevokedAt != nil:
		return "revoked"
	case t.ExpiresAt != nil && !c.now.Before(*t.ExpiresAt):
		return "expired"
	default:
		return "valid"
	}
}

// renewed is the time of the last renewal for a table.
func renewed(t store.Token) string {
	if !t.Renewal.Renewable {
		return "-"
	}
	return formatTime(t.Renewal.At, "never")
}

// parse parses flags, followed by this number of arguments. Errors never quote an argument, which may be a misplaced
// token.
func (c command) parse(flags *flag.FlagSet, args []string, rest int) error {
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, _ = io.WriteString(c.stdout, c.usage)
		flags.SetOutput(c.stdout)
		flags.PrintDefaults()
		return err
	case err != nil:
		return usagef("unknown flag, or flag without a value")
	case flags.NArg() != rest:
		return usagef("%d arguments besides flags, want %d", flags.NArg(), rest)
	}
	return nil
}

// parseExpiry parses a time or a duration from now; nil for empty text.
func parseExpiry(text string, now time.Time) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return &at, nil
	}
	if days, ok := parseDays(text); ok {
		return new(now.AddDate(0, 0, days)), nil
	}
	if after, err := time.ParseDuration(text); err == nil {
		return new(now.Add(after)), nil
	}
	return nil, usagef("--expires: must be a time such as 2027-01-31T00:00:00Z, or a duration from now such as 12h or 90d")
}

// parseDays parses a number of days, such as 90d.
func parseDays(text string) (days int, ok bool) {
	const century = 36525
	count, ok := strings.CutSuffix(text, "d")
	if !ok {
		return 0, false
	}
	days, err := strconv.Atoi(count)
	return days, err == nil && days <= century
}

func describe(t store.Token) string {
	text := fmt.Sprintf("%q of role %s", t.Name, t.Role)
	if t.ClusterUID != "" {
		text += " of cluster " + t.ClusterUID
	}
	if t.ClusterName != "" {
		text += " with the name " + t.ClusterName
	}
	return text
}

// formatTime formats a time for a table; none replaces nil.
func formatTime(at *time.Time, none string) string {
	if at == nil {
		return none
	}
	return at.UTC().Format("2006-01-02T15:04Z")
}
