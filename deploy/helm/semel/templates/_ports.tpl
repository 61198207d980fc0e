{{- define "semel.port" -}}
{{ regexFind "[0-9]+$" (first .Values.config.listen).address }}
{{- end }}
{{- define "semel.adminPort" -}}
{{ regexFind "[0-9]+$" .Values.config.admin.address }}
{{- end }}
