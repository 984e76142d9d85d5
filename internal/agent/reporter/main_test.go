package reporter

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/threeport/threeport-agent/internal/testing/apiserver"
)

// shared is the API server of all tests, and its administrator.
var shared struct {
	api     *apiserver.Server
	dynamic dynamic.Interface
	reader  *rest.Config // a user with the agent's role: list and watch everything, get nothing
}

func TestMain(m *testing.M) {
	code, err := runMain(m)
	if err == nil {
		err = leaks()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "watch:", err)
		code = 1
	}
	os.Exit(code)
}

// leaks returns what still runs after a time in which all that is to end has ended, however busy the machine is.
func leaks(options ...goleak.Option) error {
	for begin := time.Now(); ; {
		if err := goleak.Find(options...); err == nil || time.Since(begin) > 30*time.Second { // it waits itself, a little
			return err
		}
	}
}

func runMain(m *testing.M) (code int, err error) {
	ctx := context.Background()
	shared.api, err = apiserver.Start()
	if err != nil {
		return 1, err
	}
	defer func() {
		if stopErr := shared.api.Stop(); err == nil {
			err = stopErr
		}
	}()
	config := shared.api.Config()
	if shared.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return 1, err
	}
	if _, shared.reader, err = shared.api.User("reader"); err != nil {
		return 1, err
	}
	for _, manifest := range []string{
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: reader},
		  rules: [{apiGroups: ["*"], resources: ["*"], verbs: [list, watch]}]}`,
		bindClusterRole("reader", "reader"),
	} {
		obj := parse(manifest)
		if _, err := resourceOf(obj).Create(ctx, obj, metav1.CreateOptions{}); err != nil {
			return 1, err
		}
	}
	if err := allowed(ctx, "reader", true); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// allowed returns when the API server lets a user list ConfigMaps everywhere, or no longer does. The API server learns of
// roles from its own watches, with a delay.
func allowed(ctx context.Context, user string, want bool) error {
	client, err := kubernetes.NewForConfig(shared.api.Config())
	if err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		review, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Version: "v1", Resource: "configmaps"},
			},
		}, metav1.CreateOptions{})
		return err == nil && review.Status.Allowed == want, err
	})
	if err != nil {
		return fmt.Errorf("wait for %s to be allowed to list (%t): %w", user, want, err)
	}
	return nil
}

// bindClusterRole is a binding of the ClusterRole of the same name.
func bindClusterRole(name, user string) string {
	return fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %s}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %s}]
`, name, name, user)
}
