package operators

import (
	"github.com/threeport/threeport-agent/internal/e2e/scenario"
	"github.com/threeport/threeport-agent/internal/e2e/scenario/recording"
)

const (
	secretStore    = "SecretStore"
	externalSecret = "ExternalSecret"
	pushSecret     = "PushSecret"
)

// externalSecrets has stores of the provider "fake", whose values are in the store itself, and of the provider "kubernetes".
func externalSecrets() Operator {
	const module = "github.com/external-secrets/external-secrets"
	healthy := part(secretStore, "vault", scenario.Healthy)
	synced := condition(externalSecret, web, ready, isTrue, "SecretSynced")
	failed := condition(externalSecret, web, ready, isFalse, "")
	broken := part(externalSecret, web, scenario.Unhealthy)
	return Operator{
		Name: "external-secrets",
		programs: []program{{
			pin: "external-secrets", module: module, command: module,
			args: func(*place) ([]string, error) { return []string{"--metrics-addr=0"}, nil }, // it serves nothing else
		}},
		crds: []crds{{pin: "external-secrets", module: module, paths: []string{"config/crds/bases/*.yaml"}}},
		resources: []recording.Resource{
			custom(secretStore, "external-secrets.io", "v1", "secretstores"),
			custom(externalSecret, "external-secrets.io", "v1", "externalsecrets"),
			custom(pushSecret, "external-secrets.io", "v1alpha1", "pushsecrets"),
		},
		scenarios: []scenario.Scenario{
			moment("external-secrets-synced", "The Secret has the value of the store.", scenario.Healthy,
				synced, healthy, part(externalSecret, web, scenario.Healthy)),
			moment("external-secrets-no-key", "The store does not have the key, so there is no Secret.", scenario.Unhealthy,
				all(failed, condition(secretStore, "vault", ready, isTrue, "")), healthy, broken),
			moment("external-secrets-no-store", "The store does not exist, so there is no Secret.", scenario.Unhealthy, failed, broken),
			moment("external-secrets-invalid-store", "The store has no credentials: their Secret does not exist.", scenario.Unhealthy,
				all(failed, condition(secretStore, "vault", ready, isFalse, "")), part(secretStore, "vault", scenario.Unhealthy), broken),
			moment("external-secrets-invalid-template", "The template cannot be evaluated, so there is no Secret.", scenario.Unhealthy,
				all(failed, condition(secretStore, "vault", ready, isTrue, "")), healthy, broken),
			moment("external-secrets-pushed", "The value of the Secret is in the store.", scenario.Healthy,
				condition(pushSecret, web, ready, isTrue, ""), healthy, part(pushSecret, web, scenario.Healthy)),
			moment("external-secrets-nothing-to-push", "The Secret to push does not exist.", scenario.Unhealthy,
				all(condition(pushSecret, web, ready, isFalse, ""), condition(secretStore, "vault", ready, isTrue, "")),
				healthy, part(pushSecret, web, scenario.Unhealthy)),
		},
	}
}
