#!/bin/sh
# Installs the Threeport agent in the cluster {{.Name}}, to which kubectl and helm point. Its token expires: {{.Expires}}.
# This script contains the token: delete it after use.
set -eu
uid=$(kubectl get namespace kube-system -o 'jsonpath={.metadata.uid}')
if [ "$uid" != {{quote .UID}} ]; then
  echo "kubectl points to the cluster with the UID $uid, and this script is for "{{quote .UID}} >&2
  exit 1
fi
kubectl apply --server-side --force-conflicts -f - <<'END'
apiVersion: v1
kind: Namespace
metadata:
  name: threeport-agent-system
  labels:
    pod-security.kubernetes.io/enforce: restricted
    pod-security.kubernetes.io/audit: restricted
    pod-security.kubernetes.io/warn: restricted
---
apiVersion: v1
kind: Secret
metadata: {name: threeport-agent-cert, namespace: threeport-agent-system}
data: {token: {{.Token}}}
{{- if .CA}}
---
apiVersion: v1
kind: Secret
metadata: {name: threeport-agent-ca, namespace: threeport-agent-system}
data: {tls.crt: {{.CA}}}
{{- end}}
END
helm upgrade --install threeport-agent {{quote .Chart}} --namespace threeport-agent-system --wait \
  --set components.agent-token=true --set-string threeportApiServer={{quote .Server}}
