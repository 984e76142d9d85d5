package redact

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// deploymentOf returns a Deployment of a usual size: two containers with ten environment variables each, volumes, probes and a
// status.
func deploymentOf(tb testing.TB) string {
	tb.Helper()
	var env []string
	for i := range 10 {
		env = append(env, fmt.Sprintf(`{"name":"SETTING_%d","value":"%d"}`, i, i))
	}
	container := func(name string) string {
		return `{"name":"` + name + `","image":"example.com/` + name + `:1","env":[` + strings.Join(env, ",") + `],
			"ports":[{"containerPort":8080,"protocol":"TCP","name":"http"}],"resources":{"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"1","memory":"1Gi"}},
			"livenessProbe":{"httpGet":{"path":"/healthz","port":8080,"scheme":"HTTP"},"periodSeconds":10,"timeoutSeconds":1},
			"readinessProbe":{"httpGet":{"path":"/readyz","port":8080,"scheme":"HTTP"},"periodSeconds":10,"timeoutSeconds":1},
			"volumeMounts":[{"name":"data","mountPath":"/data"},{"name":"config","mountPath":"/config","readOnly":true}],
			"securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]},"readOnlyRootFilesystem":true}}`
	}
	return `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"app","uid":"u","resourceVersion":"1","generation":3,
		"labels":{"app.kubernetes.io/name":"web","app.kubernetes.io/instance":"web"},"annotations":{"deployment.kubernetes.io/revision":"3"}},
		"spec":{"replicas":3,"revisionHistoryLimit":10,"selector":{"matchLabels":{"app":"web"}},"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":"25%","maxUnavailable":"25%"}},
		"template":{"metadata":{"labels":{"app":"web"},"annotations":{"prometheus.io/scrape":"true"}},"spec":{"containers":[` + container("web") + `,` + container("proxy") + `],
		"volumes":[{"name":"data","emptyDir":{}},{"name":"config","configMap":{"name":"web","defaultMode":420}}],"serviceAccountName":"web","terminationGracePeriodSeconds":30}}},
		"status":{"replicas":3,"readyReplicas":3,"observedGeneration":3,"conditions":[{"type":"Available","status":"True","reason":"MinimumReplicasAvailable","message":"Deployment has minimum availability."},
		{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable","message":"done"}]}}`
}

// BenchmarkRules_Apply redacts a Deployment without credentials. BenchmarkDecode is the cost of decoding it, for comparison.
func BenchmarkRules_Apply(b *testing.B) {
	for name, rules := range map[string]*Rules{
		"built-in": nil,
		"user": rulesOf(b, `rules:
- {group: example.com, kinds: [A], path: spec.a, action: drop}
- {group: "*", kinds: ["*"], path: "**.hint", action: hash}
- {group: "*", kinds: ["*"], path: "**.env[name=TOKEN_URL].value", action: keep}`),
	} {
		b.Run(name, func(b *testing.B) {
			object := objectOf(b, deploymentOf(b))
			b.ReportAllocs()
			for b.Loop() {
				rules.Apply(object)
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	text := []byte(deploymentOf(b))
	b.ReportAllocs()
	for b.Loop() {
		var object map[string]any
		if err := json.Unmarshal(text, &object); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRules_Document(b *testing.B) {
	text := deploymentOf(b)
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		(*Rules)(nil).Document(text)
	}
}
