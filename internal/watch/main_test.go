package watch

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/threeport/threeport-agent/hack/cluster"
)

// shared is the API server of all tests, and its administrator.
var shared struct {
	cluster *cluster.Cluster
	dynamic dynamic.Interface
	reader  *rest.Config // a user with the agent's role: list and watch everything, get nothing
}

func TestMain(m *testing.M) {
	code, err := runMain(m)
	if err == nil {
		err = goleak.Find()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "watch:", err)
		code = 1
	}
	os.Exit(code)
}

func runMain(m *testing.M) (code int, err error) {
	ctx := context.Background()
	shared.cluster, err = cluster.Start(ctx, cluster.Options{Components: cluster.APIOnly(), Log: os.Stderr})
	if err != nil {
		return 1, err
	}
	defer func() {
		if stopErr := shared.cluster.Stop(); err == nil {
			err = stopErr
		}
	}()
	config := shared.cluster.Config()
	if shared.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return 1, err
	}
	if _, shared.reader, err = shared.cluster.User("reader"); err != nil {
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
	return m.Run(), nil
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
