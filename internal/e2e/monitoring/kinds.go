package monitoring

import (
	"fmt"
	"strings"
)

const kindManifest = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]ss.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {kind: %[2]s, plural: %[1]ss, singular: %[1]s}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// OperatorKinds returns the manifests of the kinds of the Prometheus Operator that the project uses, without their schemas.
func OperatorKinds() (manifests []string) {
	for _, kind := range []string{"PodMonitor", "ServiceMonitor", "PrometheusRule"} {
		manifests = append(manifests, fmt.Sprintf(kindManifest, strings.ToLower(kind), kind))
	}
	return manifests
}
