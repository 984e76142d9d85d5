package credential

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// secretTimeout bounds a request for a Secret.
const secretTimeout = 10 * time.Second

// errReplaced reports that a Secret has neither the expected token nor the new one.
var errReplaced = errors.New("the Secret has another token")

// Secret is a token in a Secret.
type Secret struct {
	secrets   corev1client.SecretInterface
	name, key string
}

// NewSecret returns the token in a key of a Secret in the namespace of the client.
func NewSecret(secrets corev1client.SecretInterface, name, key string) *Secret {
	return &Secret{secrets: secrets, name: name, key: key}
}

// CheckReplace returns the error that [Secret.Replace] would return, and changes nothing.
func (s *Secret) CheckReplace(ctx context.Context, old string) error {
	return s.replace(ctx, old, old, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
}

// Replace replaces a token. If the Secret has another one, it is not changed, and the error is errReplaced. If it has the new one already,
// that is no error.
func (s *Secret) Replace(ctx context.Context, old, renewed string) error {
	return s.replace(ctx, old, renewed, metav1.PatchOptions{})
}

func (s *Secret) replace(ctx context.Context, old, renewed string, options metav1.PatchOptions) error {
	ctx, cancel := context.WithTimeout(ctx, secretTimeout)
	defer cancel()
	found, err := s.secrets.Get(ctx, s.name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read the Secret %s: %w", s.name, err)
	}
	switch has := strings.TrimSpace(string(found.Data[s.key])); {
	case has == renewed && len(options.DryRun) == 0:
		return nil
	case has != old:
		return fmt.Errorf("%w: key %s of %s", errReplaced, s.key, s.name)
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": found.ResourceVersion}, // so that a change meanwhile is a conflict
		"data":     map[string][]byte{s.key: []byte(renewed)},
	})
	if err != nil {
		return fmt.Errorf("write the Secret %s: %w", s.name, err)
	}
	options.FieldManager = "threeport-agent"
	if _, err := s.secrets.Patch(ctx, s.name, types.MergePatchType, patch, options); err != nil {
		if apierrors.IsForbidden(err) {
			return fmt.Errorf("write the Secret %s: %w: install the component agent-token, which has the permission", s.name, err)
		}
		return fmt.Errorf("write the Secret %s: %w", s.name, err)
	}
	return nil
}
