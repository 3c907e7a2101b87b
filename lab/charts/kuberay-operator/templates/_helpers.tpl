{{- define "kuberay-operator.name" -}}
{{- default .Chart.Name .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "kuberay-operator.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: {{ .Values.componentOverride }}
{{- end }}

{{- define "kuberay-operator.labels" -}}
{{ include "kuberay-operator.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "kuberay-operator.serviceAccount" -}}
{{- default (include "kuberay-operator.name" .) .Values.serviceAccount.name }}
{{- end }}

{{- /* The namespaces to watch as one comma separated list; empty for all. */ -}}
{{- define "kuberay-operator.namespaces" -}}
{{- if .Values.watchNamespace }}
{{- join "," .Values.watchNamespace }}
{{- else if .Values.singleNamespaceInstall }}
{{- .Release.Namespace }}
{{- end }}
{{- end }}
