package world

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"syscall"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// Permit sets whether the agent may list and watch a resource of the core group, and waits until the API server decides accordingly. The
// user is that of the agent.
func (w *World) Permit(user, resource string, permitted bool) {
	w.Helper()
	const name = "threeport-agent-built-in-kinds"
	roles := w.Client.RbacV1().ClusterRoles()
	role, err := roles.Get(w.Ctx, name, metav1.GetOptions{})
	w.Must(err)
	var kept []string
	for _, other := range role.Rules[0].Resources {
		if other != resource {
			kept = append(kept, other)
		}
	}
	if permitted {
		kept = append(kept, resource)
	} else {
		rules := role.DeepCopy().Rules
		w.Cleanup(func() { w.setRules(name, rules) })
	}
	role.Rules[0].Resources = kept
	w.setRules(name, role.Rules)
	w.awaitMayWatch(user, "", resource, permitted)
}

func (w *World) setRules(role string, rules []rbacv1.PolicyRule) {
	w.Helper()
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/rules", "value": rules}})
	w.Must(err)
	_, err = w.Client.RbacV1().ClusterRoles().Patch(context.WithoutCancel(w.Ctx), role, types.JSONPatchType, patch, metav1.PatchOptions{})
	w.Must(err)
}

// Fill writes a file until the disk is full.
func (w *World) Fill(path string) {
	w.Helper()
	file, err := os.Create(path) //nolint:gosec // the test names it
	w.Must(err)
	defer file.Close() //nolint:errcheck // the file only occupies space
	for n := 4096; n > 0; {
		switch _, err := file.Write(make([]byte, n)); {
		case errors.Is(err, syscall.ENOSPC):
			n /= 2
		default:
			w.Must(err)
		}
	}
}

// RepeatRefusedWrites creates a row of the control plane at an interval until stop is called. Its database is full, so it has to refuse
// each of them.
func (w *World) RepeatRefusedWrites(interval time.Duration) (stop func()) {
	return w.Repeat(interval, func(ctx context.Context) error {
		_, err := w.Upstream.API.Create(ctx, upstream.WorkloadInstances, map[string]any{"Name": "other-" + time.Now().Format(time.RFC3339Nano)})
		if err == nil {
			return errors.New("a full database accepts a row")
		}
		return nil
	})
}
