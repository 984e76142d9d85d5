{{- /*
threeport.deployment changes the Deployment of a chart as the values say that both charts have. Its output is empty.
hack/charts/generate.sh copies this file into the charts.
*/}}
{{- define "threeport.deployment" }}
{{- $values := .chart.Values }}
{{- $template := .deployment.spec.template }}
{{- $pod := $template.spec }}
{{- $container := first $pod.containers }}
{{- if not (kindIs "invalid" $values.replicas) }}
  {{- $_ := set .deployment.spec "replicas" $values.replicas }}
{{- end }}
{{- $version := printf ":%s" ($values.image.tag | default .chart.Chart.AppVersion) }}
{{- with $values.image.digest }}
  {{- $version = printf "@%s" . }}
{{- end }}
{{- $_ := set $container "image" (print $values.image.repository $version) }}
{{- $_ := set $container "imagePullPolicy" $values.image.pullPolicy }}
{{- $_ := set $container "resources" $values.resources }}
{{- $_ := set $container "args" (concat $container.args $values.extraArgs) }}
{{- /* A variable of extraEnv replaces the one with its name. */}}
{{- $env := $values.extraEnv }}
{{- range reverse $container.env }}
  {{- $replaced := false }}
  {{- $name := .name }}
  {{- range $values.extraEnv }}
    {{- $replaced = or $replaced (eq .name $name) }}
  {{- end }}
  {{- if not $replaced }}
    {{- $env = prepend $env . }}
  {{- end }}
{{- end }}
{{- $_ := set $container "env" $env }}
{{- $_ := set $container "volumeMounts" (concat $container.volumeMounts $values.extraVolumeMounts) }}
{{- $_ := set $pod "volumes" (concat $pod.volumes $values.extraVolumes) }}
{{- if index $values.components "priority-class" }}
  {{- $_ := set $pod "priorityClassName" "threeport" }}
{{- end }}
{{- range list "affinity" "imagePullSecrets" "nodeSelector" "priorityClassName" "tolerations" "topologySpreadConstraints" }}
  {{- $name := . }}
  {{- with index $values $name }}
    {{- $_ := set $pod $name . }}
  {{- end }}
{{- end }}
{{- $metadata := $template.metadata }}
{{- with $values.podAnnotations }}
  {{- $_ := set $metadata "annotations" (merge . ($metadata.annotations | default dict)) }}
{{- end }}
{{- /* The selector of the Deployment needs the labels of the manifest, so they take precedence. */}}
{{- $_ := set $metadata "labels" (merge $metadata.labels $values.podLabels) }}
{{- end }}
