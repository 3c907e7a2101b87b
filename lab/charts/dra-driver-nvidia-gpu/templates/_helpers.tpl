{{- define "dra-driver-nvidia-gpu.template" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "dra-driver-nvidia-gpu.labels" -}}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "dra-driver-nvidia-gpu.template" . }}
{{- end }}

{{- /* The newest version that the cluster serves, as the published chart finds it, unless one is given. */ -}}
{{- define "dra-driver-nvidia-gpu.api" -}}
{{- $found := .Values.resourceApiVersion }}
{{- range list "v1" "v1beta2" "v1beta1" }}
{{- $version := printf "resource.k8s.io/%s" . }}
{{- if and (not $found) ($.Capabilities.APIVersions.Has $version) }}
{{- $found = $version }}
{{- end }}
{{- end }}
{{- $found | required "No supported resource.k8s.io API version found in the cluster." }}
{{- end }}

{{- /* The affinity of the values, in which no term takes the lab's real node: none of the driver's images can be had there. */ -}}
{{- define "dra-driver-nvidia-gpu.affinity" -}}
{{- $simulated := dict "key" "lab-kubelet" "operator" "NotIn" "values" (list "real") }}
{{- $affinity := deepCopy (default dict .Values.kubeletPlugin.affinity) }}
{{- $node := default dict $affinity.nodeAffinity }}
{{- $required := default dict $node.requiredDuringSchedulingIgnoredDuringExecution }}
{{- $terms := list }}
{{- range default (list dict) $required.nodeSelectorTerms }}
{{- $terms = append $terms (merge (dict "matchExpressions" (append (default list .matchExpressions) $simulated)) .) }}
{{- end }}
{{- $_ := set $required "nodeSelectorTerms" $terms }}
{{- $_ := set $node "requiredDuringSchedulingIgnoredDuringExecution" $required }}
{{- $_ := set $affinity "nodeAffinity" $node }}
{{- toYaml $affinity }}
{{- end }}
