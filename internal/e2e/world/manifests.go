package world

import "fmt"

// ConfigMap returns a ConfigMap with one key.
func ConfigMap(name string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {key: value}}`, name)
}

// CRD returns the CRD of a namespaced kind without a schema, in version v1.
func CRD(group, kind, plural string) string {
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
