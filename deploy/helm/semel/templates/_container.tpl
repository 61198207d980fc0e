{{- define "semel.container" -}}
- name: semel
  image: {{ .Values.semel.image | quote }}
  imagePullPolicy: {{ .Values.semel.imagePullPolicy }}
  {{- if .Values.sidecar }}
  restartPolicy: Always
  {{- end }}
  args: [run, --config, /etc/semel/semel.yaml]
  ports:
    - name: semel
      containerPort: {{ include "semel.port" . }}
    - name: semel-admin
      containerPort: {{ include "semel.adminPort" . }}
  {{- if .Values.semel.env }}
  env:
    {{- toYaml .Values.semel.env | nindent 4 }}
  {{- end }}
  {{- if .Values.semel.envFrom }}
  envFrom:
    {{- toYaml .Values.semel.envFrom | nindent 4 }}
  {{- end }}
  startupProbe: {httpGet: {path: /livez, port: semel-admin}, periodSeconds: 1, failureThreshold: 30}
  livenessProbe: {httpGet: {path: /livez, port: semel-admin}, periodSeconds: 10, failureThreshold: 3}
  readinessProbe: {httpGet: {path: /readyz, port: semel-admin}, periodSeconds: 2, failureThreshold: 1}
  resources:
    {{- toYaml .Values.semel.resources | nindent 4 }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities: {drop: [ALL]}
  volumeMounts:
    - {name: semel-config, mountPath: /etc/semel, readOnly: true}
    - {name: semel-secrets, mountPath: /run/secrets/semel, readOnly: true}
    {{- if eq .Values.config.store.kind "embedded" }}
    - {name: records, mountPath: /var/lib/semel}
    {{- end }}
    {{- if .Values.semel.volumeMounts }}
    {{- toYaml .Values.semel.volumeMounts | nindent 4 }}
    {{- end }}
{{- end }}
