package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// The agent serves its metrics as on an address that is not loopback: with TLS, to clients with the ClusterRole of config/rbac.
func TestAgent_Metrics_NeedTokenWithPermission(t *testing.T) {
	t.Parallel()
	w := newWorldWithoutAgent(t)
	w.startAgent("--metrics-secure")
	role, err := os.ReadFile(filepath.Join(root, "config", "rbac", "metrics_reader_role.yaml"))
	w.Must(err)
	w.removeLater(w.Create(string(role)))
	w.removeLater(w.Create(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: metrics-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: threeport-agent-metrics-reader}
subjects: [{kind: ServiceAccount, name: reader, namespace: %s}]
`, w.Namespace)))
	_, err = w.agent.WaitFor(w.Ctx, `"name":"metrics"`)
	w.Must(err)
	reader, stranger := w.serviceAccountToken("reader"), w.serviceAccountToken("stranger")

	if page, status, err := world.Fetch(w.Ctx, w.agent.MetricsURL); err != nil || status != http.StatusBadRequest {
		t.Errorf("GET with plain HTTP answers %d %q (%v), want %d", status, page, err, http.StatusBadRequest)
	}
	for _, tt := range []struct {
		reason, token string
		want          int
	}{
		{"no token", "", http.StatusUnauthorized},
		{"a token that the API server did not issue", "invalid", http.StatusUnauthorized},
		{"a token without the permission", stranger, http.StatusForbidden},
	} {
		page, status, err := w.secureMetrics(tt.token)
		if err != nil || status != tt.want || strings.Contains(page, "threeport_agent_") {
			t.Errorf("%s: GET answers %d %.200q (%v), want %d without metrics", tt.reason, status, page, err, tt.want)
		}
	}
	// RBAC follows a change after a moment, and the agent caches a refusal for 10 seconds.
	w.EventuallyWithin(time.Minute, "metrics with the reader's token", func() error {
		page, status, err := w.secureMetrics(reader)
		if err == nil && (status != http.StatusOK || !strings.Contains(page, "threeport_agent_reports_pending")) {
			err = fmt.Errorf("GET answers %d %.200q", status, page)
		}
		return err
	})
}

// serviceAccountToken creates a ServiceAccount, and returns a token of it.
func (w *agentWorld) serviceAccountToken(name string) string {
	w.Helper()
	w.Create("{apiVersion: v1, kind: ServiceAccount, metadata: {name: " + name + "}}")
	token, err := w.Client.CoreV1().ServiceAccounts(w.Namespace).CreateToken(w.Ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	w.Must(err)
	return token.Status.Token
}

// secureMetrics reads the metrics with TLS and, if it is not empty, a token.
func (w *agentWorld) secureMetrics(token string) (page string, status int, err error) {
	ctx, cancel := context.WithTimeout(w.Ctx, time.Minute)
	defer cancel()
	url := strings.Replace(w.agent.MetricsURL, "http:", "https:", 1)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", 0, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // the certificate is self-signed
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return "", 0, err
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	body, err := io.ReadAll(answer.Body)
	return string(body), answer.StatusCode, err
}
