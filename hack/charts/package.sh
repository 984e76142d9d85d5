#!/usr/bin/env bash
# Packages the Helm charts: the version of a chart is VERSION without its v, and the tag of the image is VERSION.
# Usage: hack/charts/package.sh VERSION REGISTRY FOLDER HELM...   (REGISTRY may be empty; HELM is the command that runs Helm)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
app_version=$1 registry=$2 folder=$3
helm=("${@:4}")

case $app_version in
v[0-9]*.*.*) version=${app_version#v} ;;
# A commit without a tag is not a semantic version.
*) version=0.0.0-git-$app_version ;;
esac
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
for chart in threeport-agent threeport-controlplane; do
  cp -r "config/charts/$chart" "$copy"
  sed "s|^  repository: |&${registry:+$registry/}|" "config/charts/$chart/values.yaml" >"$copy/$chart/values.yaml"
  "${helm[@]}" package "$copy/$chart" --version "$version" --app-version "$app_version" --destination "$folder"
done
