package kubectl

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// Exit codes, as --help documents them.
const (
	exitHealthy    = 0
	exitNotHealthy = 1
	exitUsage      = 2
	exitCluster    = 3
	exitOutdated   = 4
)

const exitHelp = `Exit codes:
  0  everything is Healthy, or has a status in --accept
  1  an object is Reconciling, Unhealthy, Down or Unknown
  2  the command line or the input is wrong, or a named object does not exist
  3  the cluster cannot be reached, or refuses the request`

// statusExitHelp is for the command that shows what the agent reported.
const statusExitHelp = exitHelp + `
  4  status: the agent does not report, so the current status is unknown`

// failure is an error with an exit code.
type failure struct {
	code int
	err  error // nil if there is nothing to print
}

func (f *failure) Error() string {
	if f.err == nil {
		return ""
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

// usage returns a failure caused by the command line or the input.
func usage(format string, args ...any) error {
	return &failure{exitUsage, fmt.Errorf(format, args...)}
}

// exitWith returns a failure with a code and nothing to print; nil for exitHealthy.
func exitWith(code int) error {
	if code == exitHealthy {
		return nil
	}
	return &failure{code: code}
}

// clusterFailure returns the failure of a request to the cluster, with a hint for the user.
func clusterFailure(doing string, err error) error {
	if _, ok := errors.AsType[*failure](err); ok {
		return err
	}
	advice := ""
	switch {
	case errors.Is(err, context.Canceled):
		return &failure{exitCluster, fmt.Errorf("%s: interrupted", doing)}
	case apierrors.IsForbidden(err):
		advice = ": ask for that permission, or choose another user with --context or --as"
	case apierrors.IsUnauthorized(err):
		advice = ": log in again, or choose another user with --context"
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return &failure{exitUsage, fmt.Errorf("%s: %w", doing, err)}
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
	case apierrors.ReasonForError(err) == "":
		advice = ": check --kubeconfig and --context, and that the cluster runs"
	}
	return &failure{exitCluster, fmt.Errorf("%s: %w%s", doing, err, advice)}
}

// exitCode returns the exit code for an error. An error without a code comes from cobra and is about arguments.
func exitCode(err error) int {
	if err == nil {
		return exitHealthy
	}
	if f, ok := errors.AsType[*failure](err); ok {
		return f.code
	}
	return exitUsage
}
