package credential

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// fakeSecrets is an API server with one Secret.
type fakeSecrets struct {
	corev1client.SecretInterface
	secret     corev1.Secret
	get, patch error
	patches    int
}

func (f *fakeSecrets) Get(context.Context, string, metav1.GetOptions) (*corev1.Secret, error) {
	return f.secret.DeepCopy(), f.get
}

func (f *fakeSecrets) Patch(
	_ context.Context, name string, kind types.PatchType, patch []byte, options metav1.PatchOptions, _ ...string,
) (*corev1.Secret, error) {
	f.patches++
	if f.patch != nil {
		return nil, f.patch
	}
	var change corev1.Secret
	if err := json.Unmarshal(patch, &change); err != nil {
		return nil, err
	}
	if name != "cert" || kind != types.MergePatchType || change.ResourceVersion != f.secret.ResourceVersion || options.FieldManager == "" {
		return nil, errors.New("the patch is invalid")
	}
	if len(options.DryRun) == 0 {
		maps.Copy(f.secret.Data, change.Data)
	}
	return &f.secret, nil
}

func newFakeSecrets() *fakeSecrets {
	return &fakeSecrets{secret: corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "cert", ResourceVersion: "7"},
		Data:       map[string][]byte{"token": []byte("old\n"), "tls.crt": []byte("certificate")},
	}}
}

func TestSecret_Replace(t *testing.T) {
	fake := newFakeSecrets()
	s := NewSecret(fake, "cert", "token")
	if err := s.CheckReplace(t.Context(), "old"); err != nil || string(fake.secret.Data["token"]) != "old\n" {
		t.Errorf("the check returned %v, and the Secret has %s", err, fake.secret.Data)
	}
	for range 2 { // the answer of the first patch may be lost
		if err := s.Replace(t.Context(), "old", "new"); err != nil || string(fake.secret.Data["token"]) != "new" || len(fake.secret.Data) != 2 {
			t.Errorf("the replacement returned %v, and the Secret has %s", err, fake.secret.Data)
		}
	}
	if fake.patches != 2 {
		t.Errorf("%d patches, want one for the check and one for the replacement", fake.patches)
	}
	for _, err := range []error{s.CheckReplace(t.Context(), "old"), s.Replace(t.Context(), "old", "newer")} {
		if !errors.Is(err, errReplaced) || strings.Contains(err.Error(), "old") {
			t.Errorf("another token in the Secret: %v, want %v", err, errReplaced)
		}
	}
}

func TestSecret_APIServerFails(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	for _, tc := range []struct {
		reason     string
		get, patch error
		want       string
	}{
		{reason: "no Secret", get: apierrors.NewNotFound(secrets, "cert"), want: "read the Secret cert"},
		{reason: "no permission", patch: apierrors.NewForbidden(secrets, "cert", errors.New("RBAC")), want: "component agent-token"},
		{reason: "a change meanwhile", patch: apierrors.NewConflict(secrets, "cert", errors.New("changed")), want: "write the Secret cert"},
	} {
		fake := newFakeSecrets()
		fake.get, fake.patch = tc.get, tc.patch
		s := NewSecret(fake, "cert", "token")
		for _, err := range []error{s.CheckReplace(t.Context(), "old"), s.Replace(t.Context(), "old", "new")} {
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %s", tc.reason, err, tc.want)
			}
		}
	}
}
