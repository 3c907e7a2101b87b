{{- define "dranet.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
tier: node
app: {{ .Chart.Name }}
k8s-app: {{ .Chart.Name }}
{{- end }}

{{- /* The affinity of the values, in which no term takes the lab's real node: there the lab runs DraNet as a process. */ -}}
{{- define "dranet.affinity" -}}
{{- $simulated := dict "key" "lab-kubelet" "operator" "NotIn" "values" (list "real") }}
{{- $affinity := deepCopy .Values.affinity }}
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
