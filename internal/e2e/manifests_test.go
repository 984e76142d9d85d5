package e2e

import "fmt"

func configMap(name string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {key: value}}`, name)
}

func deployment(name string, replicas int) string {
	return failingDeployment(name, replicas, "")
}

// failingDeployment is a Deployment whose pods fail as the stages of package cluster define.
func failingDeployment(name string, replicas int, behaviour string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata:
      labels: {app: %[1]s}
      annotations: {kwok.threeport.io/behaviour: %[3]q}
    spec:
      containers:
      - name: app
        image: example/app:1
        readinessProbe: {httpGet: {path: /, port: 80}}
`, name, replicas, behaviour)
}

func pod(name string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {containers: [{name: app, image: "example/app:1"}]}}`, name)
}

// crd returns a CRD of a namespaced kind without a schema.
func crd(group, kind, plural string) string {
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[3]s.%[1]s}
spec:
  group: %[1]s
  names: {kind: %[2]s, plural: %[3]s}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, group, kind, plural)
}
