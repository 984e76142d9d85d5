package kubectl

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// The exit codes, as --help tells of them.
const (
	exitHealthy    = 0
	exitNotHealthy = 1
	exitUsage      = 2
	exitCluster    = 3
)

const exitHelp = `Exit codes:
  0  everything is Healthy, or of a status that --accept names
  1  something is not: Reconciling, Unhealthy, Down or Unknown
  2  the command line or the input is wrong, or what is named does not exist
  3  the cluster cannot be reached, or refuses`

// failure ends the plugin with a code.
type failure struct {
	code int
	err  error // nil if everything has been said
}

func (f *failure) Error() string {
	if f.err == nil {
		return ""
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

// usage is a failure that the command line or the input is to blame for.
func usage(format string, args ...any) error {
	return &failure{exitUsage, fmt.Errorf(format, args...)}
}

// said ends the plugin with a code, and without a word.
func exitWith(code int) error {
	if code == exitHealthy {
		return nil
	}
	return &failure{code: code}
}

// clusterFailure is a failure of a request to the cluster, with what to do about it.
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

// exitCode returns what an error ends the plugin with. What nobody has put a code on is cobra's, about arguments.
func exitCode(err error) int {
	if err == nil {
		return exitHealthy
	}
	if f, ok := errors.AsType[*failure](err); ok {
		return f.code
	}
	return exitUsage
}
