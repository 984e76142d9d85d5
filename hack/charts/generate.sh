#!/usr/bin/env bash
# Writes the generated files of the charts: the objects of config/ as kustomize builds them, and the template that both share.
# Usage: hack/charts/generate.sh FOLDER KUSTOMIZE...   (a folder like config/charts, and the command that runs kustomize)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
agent=$1/threeport-agent
controlplane=$1/threeport-controlplane
kustomize=("${@:2}")

rm -rf "$agent/files" "$controlplane/files"
mkdir -p {"$agent","$controlplane"}/{files,templates}
"${kustomize[@]}" build hack/charts >"$agent/files/install.yaml"
"${kustomize[@]}" build config/controlplane >"$controlplane/files/sqlite.yaml"
"${kustomize[@]}" build config/controlplane-postgres >"$controlplane/files/postgres.yaml"

# The objects that components add. The file has the name of the component.
components=config/components
cp $components/agent-token/role.yaml "$agent/files/agent-token.yaml"
cp $components/all-kinds/role.yaml "$agent/files/all-kinds.yaml"
cp $components/secrets/role.yaml "$agent/files/secrets.yaml"
cp $components/network-policy/network_policy.yaml "$agent/files/network-policy.yaml"
cp $components/controlplane-network-policy/network_policy.yaml "$controlplane/files/controlplane-network-policy.yaml"
cp $components/pod-monitor/pod_monitor.yaml "$agent/files/pod-monitor.yaml"
cp $components/prometheus-rules/zz_generated.prometheus_rule.yaml "$agent/files/prometheus-rules.yaml"
cp $components/controlplane-service-monitor/service_monitor.yaml "$controlplane/files/controlplane-service-monitor.yaml"
cp $components/controlplane-prometheus-rules/zz_generated.prometheus_rule.yaml "$controlplane/files/controlplane-prometheus-rules.yaml"
for chart in "$agent" "$controlplane"; do
  cp $components/priority-class/priority_class.yaml "$chart/files/priority-class.yaml"
  cp hack/charts/_deployment.tpl "$chart/templates/"
done
