import Testing

/// The end of the issue of a path that SQLite would not take for a file's.
private let inMemory =
  "must be the path of a file, such as /var/lib/semel/semel.db: in memory, every record would be gone at the next start"

/// Each kind of error with its exact text and place.
struct RefusalTests {
  @Test(arguments: [
    ("listen: 5", "2:9: listen: must be a list such as [{address: \"127.0.0.1:8080\"}], not a single value"),
    ("listen: []", "2:9: listen: must name an address, such as [{address: \"127.0.0.1:8080\"}]"),
    ("listen: [{}]", "2:10: listen[0].address: is missing: write host:port or unix:/path"),
    (
      "listen: [{address: 8080}]",
      "2:20: listen[0].address: must end with a port, such as 127.0.0.1:8080 or [::1]:8080"
    ),
    (
      "listen: [{address: \":80\"}]",
      "2:20: listen[0].address: must have a host before the port, such as 127.0.0.1:8080 or [::1]:8080"
    ),
    (
      "listen: [{address: \"::1:80\"}]",
      "2:20: listen[0].address: must have an IPv6 address in brackets, such as 127.0.0.1:8080 or [::1]:8080"
    ),
    ("listen: [{address: \"h:65536\"}]", "2:20: listen[0].address: must have a port from 0 to 65535"),
    (
      "listen: [{address: \"unix:s\"}]",
      "2:20: listen[0].address: must have an absolute path of at most 103 bytes, such as unix:/run/semel.sock"
    ),
    (
      "listen: [{address: \"h:1\"}, {address: \"h:1\"}]",
      "2:38: listen[1].address: is taken by listen[0].address; write another address"
    ),
    (
      "listen: [{address: \"127.0.0.1:1\"}]\nadmin: {address: \"127.0.0.1:1\"}",
      "3:18: admin.address: is taken by listen[0].address; write another address"
    ),
    (
      "admin: {address: \"127.0.0.1:8080\"}",
      "2:18: admin.address: is taken by the default of listen; write another address"
    ),
    (
      "admin: {address: \"127.0.0.1:1\", hosts: [\"semel.internal:80\"]}",
      "2:41: admin.hosts[0]: must be a host name or an address without a port, such as semel.internal"
    ),
    (
      "admin: {address: \"127.0.0.1:1\", hosts: [5]}",
      "2:41: admin.hosts[0]: must be a host name or an address without a port, such as semel.internal"
    ),
    ("admin: {}", "2:8: admin.address: is missing: write host:port, such as 127.0.0.1:8081"),
    (
      "admin: {address: \"0.0.0.0:1\"}",
      "2:18: admin.address: can be reached from other machines: add a token_file, or listen on 127.0.0.1"
    ),
    (
      "admin: {address: \"127.example.com:1\"}",
      "2:18: admin.address: can be reached from other machines: add a token_file, or listen on 127.0.0.1"
    ),
    (
      "admin: {address: \"127.0.0.1:1\", token_file: /nowhere}",
      "2:45: admin.token_file: names /nowhere, which does not exist"
    ),
    ("workers: two", "2:10: workers: must be a whole number from 0 to 1024"),
    ("workers: 1025", "2:10: workers: must be a whole number from 0 to 1024"),
    ("workers: -1", "2:10: workers: must be a whole number from 0 to 1024"),
    ("workers: 99999999999999999999", "2:10: workers: must be a whole number from 0 to 1024"),
    ("workers: [1]", "2:10: workers: must be a whole number, not a list"),
    ("workers:", "2:9: workers: has no value: write a whole number, or take the member out"),
    ("wrokers: 1", "2:1: wrokers: unknown member; did you mean workers?"),
    ("drainDelay: 1s", "2:1: drainDelay: unknown member; did you mean drain_delay?"),
    ("drain_delay: 5", "2:14: drain_delay: has no unit: write it in ms, s, m, h or d, such as 5s"),
    ("drain_delay: 5sec", "2:14: drain_delay: must be a whole number and a unit, which is ms, s, m, h or d"),
    ("drain_delay: 1.5s", "2:14: drain_delay: must be a whole number and a unit, which is ms, s, m, h or d"),
    ("drain_delay: -1s", "2:14: drain_delay: must be a whole number and a unit, which is ms, s, m, h or d"),
    (
      "drain_delay: 99999999999999999999",
      "2:14: drain_delay: has no unit: write it in ms, s, m, h or d, and at most 36500d"
    ),
    (
      "drain_delay: 3153600001",
      "2:14: drain_delay: has no unit: write it in ms, s, m, h or d, and at most 36500d"
    ),
    ("drain_delay: 36501d", "2:14: drain_delay: must be at most 36500d"),
    ("drain_delay: 99999999999999999999ms", "2:14: drain_delay: must be at most 36500d"),
    (
      "limits: {header_bytes: 64}",
      "2:24: limits.header_bytes: has no unit: write it in B, KiB, MiB or GiB, such as 64KiB"
    ),
    (
      "limits: {body_memory: 99999999999999999999}",
      "2:23: limits.body_memory: has no unit: write it in B, KiB, MiB or GiB, such as 64KiB"
    ),
    (
      "limits: {header_bytes: 64KB}",
      "2:24: limits.header_bytes: must be a whole number and a unit, which is B, KiB, MiB or GiB"
    ),
    ("limits: {header_bytes: 2MiB}", "2:24: limits.header_bytes: must be from 1KiB to 1MiB"),
    ("limits: {body_memory: 99999999999GiB}", "2:23: limits.body_memory: must be from 1MiB to 1024GiB"),
    ("limits: {header_timeout: 0s}", "2:26: limits.header_timeout: must be at least 1ms"),
    ("limits: {max_in_flight: 0}", "2:25: limits.max_in_flight: must be a whole number from 1 to 1000000"),
    (
      "limits: {caller_new_keys: 5}",
      "2:27: limits.caller_new_keys: must be a rate in s, m or h, such as 600/m, or 0 for no limit"
    ),
    ("limits: []", "2:9: limits: must be a mapping of members, not a list"),
    (
      "log: {level: loud}",
      "2:14: log.level: must be trace, debug, info, notice, warning, error or critical"
    ),
    ("log: {format: xml}", "2:15: log.format: must be json or text"),
    ("log: {access: yes}", "2:15: log.access: must be true or false"),
    (
      "log: {color: true}", "2:7: log.color: unknown member; allowed are level, format, access, replay_sample"
    ),
    (
      "tracing: {}",
      "2:10: tracing.otlp: is missing: write the collector's URL, such as http://127.0.0.1:4318"
    ),
    (
      "tracing: {otlp: localhost}",
      "2:17: tracing.otlp: must be an http or https URL without query, such as http://127.0.0.1:4318"
    ),
    (
      "routes: [{name: r, caller: {parts: [address, address]}}]",
      "2:46: routes[0].caller.parts[1]: is given twice, first in line 2; take one of them out"
    ),
    (
      "tracing: {otlp: \"http://h:1/v1/traces\"}",
      "2:17: tracing.otlp: must end before /v1/traces, which is added: write it without, such as http://127.0.0.1:4318"
    ),
    (
      "tracing: {otlp: \"https://u:p@h/v1/traces/\"}",
      "2:17: tracing.otlp: must end before /v1/traces, which is added: write it without, such as http://127.0.0.1:4318"
    ),
    (
      "tracing: {otlp: \"http://a:b/c@d\"}",
      "2:17: tracing.otlp: must have user and password percent-encoded: % as %25, @ as %40, / as %2F"
    ),
    (
      "tracing: {otlp: \"http://c\", sample: 0}",
      "2:37: tracing.sample: must be a whole number from 1 to 1000000"
    ),
    ("store: {kind: mysql}", "2:15: store.kind: must be embedded or redis"),
    ("store: {url: \"redis://h\"}", "2:9: store.url: belongs to kind: redis; write that, or take it out"),
    (
      "store: {kind: redis, url: \"redis://h\", path: x}",
      "2:40: store.path: belongs to kind: embedded; take it out"
    ),
    (
      "store: {kind: redis, url: \"redis://h\", timeout: 11s}", "2:49: store.timeout: must be at most 10s"
    ),
    (
      "routes: [{name: r, idempotency: off, upstream: frontend}]",
      "2:48: routes[0].upstream: names no upstream; write backend"
    ),
    (
      "store: {kind: redis, url: \"redis://h\", replicas: 17}",
      "2:50: store.replicas: must be a whole number from 0 to 16"
    ),
    (
      "store: {kind: redis, url: \"redis://h\", durable: disk}",
      "2:49: store.durable: must be memory or waitaof"
    ),
    (
      "store: {kind: redis, url: \"redis://h\", plain_claims: always}",
      "2:40: store.plain_claims: is no setting any more: every claim takes the script; take it out"
    ),
    (
      "store: {trust_clock: true}",
      "2:9: store.trust_clock: is no setting any more: the store starts with any clock, and forgets nothing by it; "
        + "take it out"
    ),
    (
      "store: {kind: redis, url: \"redis://h\", replicas: 1, timeout: 250ms}",
      "2:62: store.timeout: must be at least 300ms with replicas or durable: waitaof, since Redis ends a wait for missing replicas up to 100 ms late"
    ),
    (
      "store: {kind: redis, url: \"redis://h\", failover_grace: 1s}",
      "2:56: store.failover_grace: needs replicas above 0; take it out"
    ),
    ("store: {replicas: 1}", "2:9: store.replicas: belongs to kind: redis; write that, or take it out"),
    (
      "store: {kind: redis}",
      "2:8: store.url: is missing: write redis://host:port/0, rediss://host:port/0 or unix:/path"
    ),
    (
      "store: {kind: redis, url: \"http://h\"}",
      "2:27: store.url: must be redis://host:port/0, rediss://host:port/0 or unix:/path"
    ),
    (
      "store: {kind: redis, url: \"redis://h\", nodes: [a]}",
      "2:40: store.nodes: belongs to topology: sentinel or cluster; write url, or take it out"
    ),
    (
      "store: {kind: redis, url: \"redis://h\", master_name: m}",
      "2:40: store.master_name: belongs to topology: sentinel; take it out"
    ),
    (
      "store: {kind: redis, url: \"redis://h\", tls: {server_name: x}}",
      "2:45: store.tls: is for rediss:// alone; write that, or take it out"
    ),
    (
      "store: {kind: redis, url: \"rediss://h\", tls: {ca: /nowhere}}",
      "2:51: store.tls.ca: names /nowhere, which does not exist; give the path of a PEM file"
    ),
    (
      "store: {kind: redis, url: \"redis://h\", username: u}",
      "2:50: store.username: needs password_file beside it"
    ),
    (
      "store: {kind: redis, url: \"redis://h\", password_file: /nowhere}",
      "2:55: store.password_file: names /nowhere, which does not exist"
    ),
    (
      "store: {kind: redis, url: \"redis://a:b@h\", username: u}",
      "2:44: store.username: repeats what stands in the url; take one of them out"
    ),
    (
      "store: {kind: redis, topology: Cluster, nodes: [h], master_name: m}",
      "2:32: store.topology: must be standalone, sentinel or cluster"
    ),
    (
      "store: {kind: redis, topology: cluster, nodes: [\"rediss://h:1\"]}",
      "2:49: store.nodes[0]: must be host:port, without rediss://; tls: {} beside nodes turns TLS on"
    ),
    (
      "store: {kind: redis, topology: sentinel, nodes: [h]}",
      "2:8: store.master_name: is missing: write the name under which the Sentinels know the master"
    ),
    (
      "store: {kind: redis, topology: sentinel, master_name: m}",
      "2:8: store.nodes: is missing: write the addresses of the Sentinels, such as [\"10.0.0.1:26379\"]"
    ),
    (
      "store: {kind: redis, topology: sentinel, master_name: m, nodes: [\"h:0\"]}",
      "2:66: store.nodes[0]: must have a port from 1 to 65535"
    ),
    (
      "store: {kind: redis, topology: sentinel, master_name: m, nodes: [h], url: redis://h}",
      "2:70: store.url: belongs to topology: standalone; write the Sentinels' addresses in nodes"
    ),
    (
      "store: {kind: redis, topology: cluster, nodes: [h], url: \"redis://h/3\"}",
      "2:53: store.url: belongs to topology: standalone; write the host and port in nodes (a cluster has database 0 alone)"
    ),
    (
      "store: {kind: redis, topology: cluster, nodes: []}",
      "2:48: store.nodes: must have an element: write the addresses of some nodes, such as [\"10.0.0.1:6379\"]"
    ),
    ("store: {master_name: m}", "2:9: store.master_name: belongs to kind: redis; write that, or take it out"),
    (
      "store: {kind: redis, url: \"redis://h/x\"}",
      "2:27: store.url: must have the database's number as its path, such as redis://host:port/0"
    ),
    (
      "store: {kind: redis, url: \"redis://secret@h\"}",
      "2:27: store.url: must have a password behind the user: redis://user:password@host, or redis://:password@host"
    ),
    (
      "store: {kind: redis, url: \"redis://:a%zz@h\"}",
      "2:27: store.url: must have user and password percent-encoded: % as %25, @ as %40, / as %2F"
    ),
    (
      "store: {kind: redis, url: \"redis://h/0?x=1\"}",
      "2:27: store.url: must end after the database's number; a ? or # in a password is written %3F or %23"
    ),
    (
      "store: {namespace: \"a{b}\"}",
      "2:20: store.namespace: must be a name of 1 to 64 letters, digits, dots, hyphens and underscores"
    ),
    ("store: {path: \"\"}", "2:15: store.path: must not be empty: write the path of a database file"),
    ("store: {path: \":memory:\"}", "2:15: store.path: \(inMemory)"),
    ("store: {path: \"file:x.db?mode=memory\"}", "2:15: store.path: \(inMemory)"),
    ("defaults: {name: x}", "2:12: defaults.name: belongs to a single route; take it out of the defaults"),
    ("settle: 1s", "2:1: settle: unknown member; it belongs to upstreams.NAME"),
    ("limits: {retention: 1h}", "2:10: limits.retention: unknown member; it belongs to a route"),
    ("store: {workers: 1}", "2:9: store.workers: unknown member; it belongs to the top"),
    (
      "routes: [{name: r, idempotency: off, settle: 1s}]",
      "2:38: routes[0].settle: unknown member; it belongs to upstreams.NAME"
    ),
    (
      "routes: [{name: r, idempotency: off, max_connections: 1}]",
      "2:38: routes[0].max_connections: unknown member; it belongs to upstreams.NAME or limits"
    ),
    (
      "routes: [{name: r, idempotency: off, path: /r}]",
      "2:38: routes[0].path: unknown member; it belongs to store or a route's match"
    ),
    ("defaults: {leese: 1s}", "2:12: defaults.leese: unknown member; did you mean lease?"),
    ("defaults: {lease: 1}", "2:19: defaults.lease: has no unit: write it in ms, s, m, h or d, such as 1s"),
    ("routes: {}", "2:9: routes: must be a list of routes, not a mapping"),
    ("routes: [x]", "2:10: routes[0]: must be a mapping of members, not a single value"),
    ("routes: [{idempotency: off}]", "2:10: routes[0].name: is missing: every route needs a name of its own"),
    (
      "routes: [{name: r}]",
      "2:10: routes[0].caller: is missing: say who the caller is, such as {parts: [\"header:Authorization\"]}, "
        + "or write idempotency: off"
    ),
    (
      "routes: [{name: r, caller: {}}]",
      "2:28: routes[0].caller: must have parts that say who the caller is: "
        + "\(callerForms); or shared: true for all clients"
    ),
    (
      "routes: [{name: a, idempotency: off}, {name: a, idempotency: off}]",
      "2:46: routes[1].name: must be unique; the route in line 2 has it too"
    ),
    (
      "routes: [{name: r, caller: me}]",
      "2:28: routes[0].caller: must be a mapping of members, not a single value"
    ),
    (
      "routes: [{name: r, caller: }]",
      "2:28: routes[0].caller: has no value: write a mapping of members, or take the member out"
    ),
    (
      "defaults: {caller: {parts: []}}\nroutes: [{name: r}]",
      "2:28: defaults.caller.parts: must name at least one part: "
        + "\(callerForms)"
    ),
    ("? [a]\n: 1", "2:3: a member's name must be a plain word"),
    (
      "<<: {workers: 1}",
      "2:1: <<: unknown member; merge keys are not taken: write the members out, or put them in defaults"
    ),
  ]) func `an issue names the fault's place and its remedy`(text: String, issue: String) {
    #expect(issues(upstream + text) == [issue])
  }

  @Test(arguments: [
    ("header_line: 1KiB", "16KiB"), ("header_count: 20", "100"), ("pipeline_bytes: 1MiB", "64KiB"),
    ("http2_window: 1MiB", "64KiB"), ("http2_resets: 20", "200"), ("http2_control_frames: 50", "1000"),
  ]) func `a limit that was a setting is refused with the one that holds`(member: String, limit: String) {
    let name = member.prefix { $0 != ":" }
    #expect(
      issues(upstream + "limits: {max_in_flight: 5, \(member)}") == [
        "2:28: limits.\(name): is a setting of earlier versions: this limit is always \(limit) now, the earlier default; "
          + "take the member out"
      ])
  }

  @Test func `each member of a Redis is refused without one`() {
    let reason = "belongs to kind: redis; write that, or take it out"
    #expect(
      issues(upstream + "store: {topology: cluster, nodes: [h], port: 1}") == [
        "2:9: store.topology: \(reason)", "2:28: store.nodes: \(reason)",
        "2:40: store.port: is no member; for a Redis write kind: redis and write store.url: redis://HOST:PORT/0",
      ])
  }
}
