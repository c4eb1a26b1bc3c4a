{{- define "konfig-konector.labels" -}}
app.kubernetes.io/name: konfig-konector
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "konfig-konector.selector" -}}
app.kubernetes.io/name: konfig-konector
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* team=web,stage=prod */}}
{{- define "konfig-konector.defaultTags" -}}
{{- $tags := list }}
{{- range $key, $value := .Values.defaultTags }}
{{- $tags = append $tags (printf "%s=%s" $key $value) }}
{{- end }}
{{- join "," $tags }}
{{- end }}
