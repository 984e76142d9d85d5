package scenario

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/threeport/threeport-agent/internal/e2e/scenario/recording"
)

func TestPrepare_WaitsForServiceAccountAndConfigMap(t *testing.T) {
	made := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "app", Name: name} }
	account := &corev1.ServiceAccount{ObjectMeta: made("default")}
	certificates := &corev1.ConfigMap{ObjectMeta: made(recording.RootCertificates)}
	tests := []struct {
		reason string
		there  []runtime.Object
		want   error
	}{
		{reason: "both are there", there: []runtime.Object{account, certificates}},
		{reason: "no ServiceAccount", there: []runtime.Object{certificates}, want: context.DeadlineExceeded},
		{reason: "no certificates", there: []runtime.Object{account}, want: context.DeadlineExceeded},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			env := Env{Client: client(t, tt.there...), Namespace: "app"}
			if err := env.Prepare(ctx); !errors.Is(err, tt.want) {
				t.Errorf("%s: got %v, want %v", tt.reason, err, tt.want)
			}
			namespaces := env.Client.Resource(namespaceResource)
			if _, err := namespaces.Get(ctx, "app", metav1.GetOptions{}); tt.want == nil && err != nil {
				t.Errorf("%s: the namespace does not exist: %v", tt.reason, err)
			}
			if tt.want != nil {
				return
			}
			if err := env.Remove(ctx); err != nil {
				t.Errorf("%s: %v", tt.reason, err)
			}
			if _, err := namespaces.Get(ctx, "app", metav1.GetOptions{}); err == nil {
				t.Errorf("%s: the namespace still exists", tt.reason)
			}
		})
	}
}
