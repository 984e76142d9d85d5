package auth

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/threeport/threeport-agent/internal/server/store"
)

// The exit codes of the command.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

const tokenUsage = `usage: controlplane token create --role agent|viewer|admin --name NAME [--cluster UID] [--expires WHEN]
       controlplane token list
       controlplane token revoke ID
`

// CommandStore is what the token command works on.
type CommandStore interface {
	TokenStore
	AppendAudit(ctx context.Context, record store.AuditRecord) error
}

// errUsage is a command that is not understood.
var errUsage = errors.New("not understood")

// command is one run of the token command.
type command struct {
	store          CommandStore
	stdout, stderr io.Writer
	now            time.Time
}

// RunTokenCommand runs "controlplane token" with the arguments after these words, and returns its exit code: 0, 1 if it
// failed, 2 if it was not understood. A new token's secret is the only thing on stdout, so that it can go into a file. A
// server that runs on the same database knows of a revocation within [cacheTime].
func RunTokenCommand(ctx context.Context, args []string, s CommandStore, stdout, stderr io.Writer) int {
	c := command{s, stdout, stderr, time.Now()}
	switch err := c.run(ctx, args); {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return exitDone
	case errors.Is(err, errUsage):
		_, _ = fmt.Fprintf(stderr, "controlplane: %v\n%s", err, tokenUsage)
		return exitUsage
	default:
		_, _ = fmt.Fprintf(stderr, "controlplane: %v\n", err)
		return exitFailed
	}
}

func (c command) run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%w: accepted are create, list and revoke", errUsage)
	}
	switch verb, rest := args[0], args[1:]; verb {
	case "create":
		return c.create(ctx, rest)
	case "list":
		return c.list(ctx, rest)
	case "revoke":
		return c.revoke(ctx, rest)
	case "help", "-h", "-help", "--help":
		_, _ = io.WriteString(c.stdout, tokenUsage)
		return nil
	default:
		return fmt.Errorf("%w: accepted are create, list and revoke", errUsage)
	}
}

func (c command) create(ctx context.Context, args []string) error {
	var wanted NewToken
	var role, expires string
	flags := flag.NewFlagSet("controlplane token create", flag.ContinueOnError)
	flags.StringVar(&role, "role", "", "`agent`, viewer or admin")
	flags.StringVar(&wanted.Name, "name", "", "whose it is, for people: `letters`, digits and ._@-")
	flags.StringVar(&wanted.ClusterUID, "cluster", "", "the agent's cluster: the `UID` of its namespace kube-system")
	flags.StringVar(&expires, "expires", "", "when it ends: a `time` such as 2027-01-31T00:00:00Z, or after how long, such as 12h or 90d; never if empty")
	if err := c.parse(flags, args, 0); err != nil {
		return err
	}
	wanted.Role = Role(role)
	ends, err := parseExpiry(expires, c.now)
	if err != nil {
		return err
	}
	wanted.ExpiresAt = ends
	token, secret, err := issue(ctx, c.store, wanted, c.now)
	if problem, ok := errors.AsType[*Problem](err); ok {
		return fmt.Errorf("%w: %s", errUsage, problem.Detail)
	}
	if err != nil {
		return fmt.Errorf("create token: %w", err)
	}
	_, _ = fmt.Fprintln(c.stdout, secret)
	_, _ = fmt.Fprintf(c.stderr, "Token %d, %s, expires %s. It is shown this once.\n", token.ID, describe(token), formatTime(token.ExpiresAt, "never"))
	return c.recordAudit(ctx, http.MethodPost, "/v0/tokens", http.StatusCreated)
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
	_, _ = fmt.Fprintln(table, "ID\tNAME\tROLE\tCLUSTER\tSTATE\tCREATED\tEXPIRES\tUSED\tSUBJECT")
	for _, t := range tokens {
		_, _ = fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", t.ID, cmp.Or(t.Name, "-"), t.Role, cmp.Or(t.ClusterUID, "-"), c.state(t),
			formatTime(&t.CreatedAt, "-"), formatTime(t.ExpiresAt, "never"), formatTime(t.UsedAt, "never"), cmp.Or(t.Subject, "-"))
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
		return fmt.Errorf("%w: a token is named by its ID, which `controlplane token list` shows", errUsage)
	}
	token, err := c.store.RevokeToken(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("there is no token %d: `controlplane token list` shows all", id)
	}
	if err != nil {
		return fmt.Errorf("revoke token %d: %w", id, err)
	}
	_, _ = fmt.Fprintf(c.stdout, "Token %d, %s, is revoked.\n", id, describe(token))
	return c.recordAudit(ctx, http.MethodDelete, "/v0/tokens/"+strconv.FormatInt(id, 10), http.StatusOK)
}

// audit records a change as if it had been made through the API.
func (c command) recordAudit(ctx context.Context, method, path string, code int) error {
	err := c.store.AppendAudit(ctx, store.AuditRecord{
		At: c.now, Principal: "command:controlplane", Role: string(RoleAdmin), Method: method, Path: path, Code: code,
	})
	if err != nil {
		return fmt.Errorf("it is done, but could not be recorded: %w", err)
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

// parse reads flags, and wants so many arguments after them. It never repeats an argument: somebody may have given a
// token where none belongs.
func (c command) parse(flags *flag.FlagSet, args []string, rest int) error {
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, _ = io.WriteString(c.stdout, tokenUsage)
		flags.SetOutput(c.stdout)
		flags.PrintDefaults()
		return err
	case err != nil:
		return fmt.Errorf("%w: an unknown flag, or one without its value", errUsage)
	case flags.NArg() != rest:
		return fmt.Errorf("%w: besides flags, %d arguments are wanted and %d are there", errUsage, rest, flags.NArg())
	}
	return nil
}

// parseExpiry reads a time, or how long from now on; nil if the text is empty.
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
	return nil, fmt.Errorf("%w: --expires: accepted are a time such as 2027-01-31T00:00:00Z, and how long from now on, such as 12h or 90d", errUsage)
}

// parseDays reads a number of days, such as 90d.
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
	return text
}

// moment is a time for a table, or what stands for none.
func formatTime(at *time.Time, none string) string {
	if at == nil {
		return none
	}
	return at.UTC().Format("2006-01-02T15:04Z")
}
