package main

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
	"time"

	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

const workloadUsage = `usage: controlplane workload assign --cluster UID TYPE ID
       controlplane workload release TYPE ID
TYPE is WorkloadInstance or HelmWorkloadInstance. --database or --database-file is the database of the server.
`

// workloadCommand is a parsed command line of the command workload.
type workloadCommand struct {
	clusterUID string // empty to release
	instance   threeport.Instance
}

// runWorkload is the command workload. It assigns a workload to a cluster in the database, or releases it. The server may run
// meanwhile.
func runWorkload(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var db databaseFlags
	rest, err := db.extract(args)
	var command workloadCommand
	if err == nil {
		command, err = parseWorkloadCommand(rest)
	}
	if errors.Is(err, flag.ErrHelp) {
		_, _ = io.WriteString(stdout, workloadUsage)
		return 0
	}
	if err != nil {
		printError(stderr, err)
		_, _ = io.WriteString(stderr, workloadUsage)
		return exitUsage
	}
	address, code := db.existing(stderr)
	if code != 0 {
		return code
	}
	opened, err := store.Open(ctx, store.Config{Address: address, KeepIndexes: true})
	if err == nil {
		err = errors.Join(command.run(ctx, opened, stdout), opened.Close())
	}
	if err != nil {
		printError(stderr, err)
		return exitFailed
	}
	return 0
}

// parseWorkloadCommand parses the arguments without those of the database.
func parseWorkloadCommand(args []string) (c workloadCommand, err error) {
	if len(args) > 0 && slices.Contains([]string{"help", "-h", "-help", "--help"}, args[0]) {
		return c, flag.ErrHelp
	}
	if len(args) == 0 || args[0] != "assign" && args[0] != "release" {
		return c, errors.New("controlplane workload: use assign or release")
	}
	flags := flag.NewFlagSet("controlplane workload "+args[0], flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	assigns := args[0] == "assign"
	if assigns {
		flags.StringVar(&c.clusterUID, "cluster", "", "")
	}
	if err := flags.Parse(args[1:]); err != nil {
		return c, err
	}
	if flags.NArg() != 2 {
		return c, fmt.Errorf("arguments %q: use TYPE and ID, after the flags", flags.Args())
	}
	c.instance.Type = flags.Arg(0)
	id, err := strconv.ParseInt(flags.Arg(1), 10, 64)
	c.instance.ID = threeport.ID(id)
	switch {
	case assigns && !auth.IsClusterUID(c.clusterUID):
		return c, errors.New("--cluster: must be the UID of the cluster's namespace kube-system")
	case c.instance.Type != threeport.TypeWorkloadInstance && c.instance.Type != threeport.TypeHelmWorkloadInstance:
		return c, fmt.Errorf("%q is not a type: use %s or %s", c.instance.Type, threeport.TypeWorkloadInstance, threeport.TypeHelmWorkloadInstance)
	case err != nil:
		return c, fmt.Errorf("%q is not an ID: use that of the instance, a decimal number", flags.Arg(1))
	}
	return c, nil
}

// run changes the cluster, and writes the audit record of the same request to the API.
func (c workloadCommand) run(ctx context.Context, s *store.Store, stdout io.Writer) error {
	name := fmt.Sprintf("%s %d", c.instance.Type, int64(c.instance.ID))
	before, err := s.AssignWorkload(ctx, c.instance, c.clusterUID)
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("there is no %s", name)
	}
	if err != nil {
		return err
	}
	record := auth.AssignmentRecord(http.MethodPut, c.instance, c.clusterUID)
	if c.clusterUID == "" {
		record = auth.AssignmentRecord(http.MethodDelete, c.instance, before)
	}
	record.At, record.Principal, record.Role = time.Now(), "command:controlplane", string(auth.RoleAdmin)
	if err := s.AppendAudit(ctx, record); err != nil {
		return fmt.Errorf("done, but the audit record could not be written: %w", err)
	}
	_, _ = fmt.Fprintf(stdout, "The cluster of %s is %s; before: %s.\n", name, cmp.Or(c.clusterUID, "none"), cmp.Or(before, "none"))
	return nil
}
