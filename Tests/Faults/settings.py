"""Semel's settings in these runs: so short that leases and waits lapse within seconds."""

LEASE = 1.5
RESPONSE_TIMEOUT = 0.7
SETTLE = 0.6
WAIT_TIMEOUT = 1.5
STORE_TIMEOUT = 0.25
SHUTDOWN_GRACE = 3
# Of a store of several servers: Semel's time-out and its pause for new claims, and the silence after which a server
# counts as dead.
TOPOLOGY_TIMEOUT = 0.4
FAILOVER_GRACE = 0.5
NODE_TIMEOUT = 2
MASTER_NAME = "orders"

# The maximum time for which an intent may be in flight after the faults: the longest life of a claim.
LONGEST_FLIGHT = LEASE + RESPONSE_TIMEOUT + SETTLE


def ms(seconds):
    return f"{int(seconds * 1000)}ms"


def text(port, admin, store, backend_port, http2):
    return f"""
listen: [{{address: '127.0.0.1:{port}'}}]
admin: {{address: '127.0.0.1:{admin}'}}
workers: 1
shutdown_grace: {SHUTDOWN_GRACE}s
log: {{level: warning, format: text, access: false}}
upstreams:
  shop:
    url: 'http://127.0.0.1:{backend_port}'
    http2: {http2}
    connect_timeout: 300ms
    response_timeout: {ms(RESPONSE_TIMEOUT)}
    settle: {ms(SETTLE)}
store: {{{store}}}
defaults:
  caller: {{parts: ['header:Authorization']}}
  lease: {ms(LEASE)}
  wait_timeout: {ms(WAIT_TIMEOUT)}
routes:
  - {{name: hold, match: {{path: /hold}}, on_unknown: hold}}
  - {{name: retry, match: {{path: /retry}}, on_unknown: retry}}
  - {{name: batch, match: {{path: /batch}}, on_unknown: hold, batch: {{items: /orders, key: /id, results: /results}}}}
  - {{name: repeat, match: {{path: /repeat}}, retries: {{max: 3, backoff: 50ms, max_backoff: 300ms}}}}
  - name: ask
    match: {{path: /ask}}
    on_unknown: reconcile
    reconcile: {{path: "/lookup/{{request_id}}", absent: {{json: {{/state: absent}}}}, status: 201}}
"""
