package e2e

import "fmt"

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
