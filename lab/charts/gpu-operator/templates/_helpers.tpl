{{- define "gpu-operator.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "gpu-operator.discovery" -}}
{{ printf "%s-node-feature-discovery" .Release.Name | trunc 56 | trimSuffix "-" }}
{{- end }}

{{- /* A component's settings as the ClusterPolicy takes them: those that are set. */ -}}
{{- define "gpu-operator.component" -}}
{{- $settings := dict }}
{{- range $name, $value := . }}
{{- if or $value (kindIs "bool" $value) }}
{{- $_ := set $settings $name $value }}
{{- end }}
{{- end }}
{{- toYaml $settings }}
{{- end }}
