/// The configuration that `semel init` writes.
struct StarterConfiguration {
  let upstream: String
  /// `embedded`, or the URL of a Redis.
  let store: String
  let path: String

  var text: String {
    """
    # Semel in front of one backend. Every member, with its default: Sources/Idempotency/SETTINGS.md.
    # `semel check FILE` reports errors, `semel explain FILE METHOD URL` shows what a request meets.

    listen: [{address: "127.0.0.1:8080"}]         # for clients
    # For operators: probes, metrics, records. The first start makes the token, and `semel key` finds it here.
    admin: {address: "127.0.0.1:8081", token_file: semel.token}

    upstreams:
      backend:                                    # this name is part of every record's identity: to rename it
                                                  # later means that no record is found, and retries run again
        url: \(Self.quoted(upstream))
        # response_timeout: 30s                   # then the outcome is unknown, and the client gets 504

    store:
    \(storeMembers)
      # id_secret_file: /run/secrets/semel-id     # keys the record ids; make it now or never, it must not change

    routes:
      - name: writes
        match: {path: \(Self.quoted(path))}       # without methods: all but GET, HEAD, OPTIONS and TRACE
        # Without a key a request is passed through. `required` refuses it, once every client sends one.
        idempotency: optional
        key: {from: ["header:Idempotency-Key"]}
        # Who the client is: no caller gets another's responses. A bearer token that is renewed between retries makes a
        # new caller of the same client; `jwt:sub` with `jwt: {jwks_file: …}` knows it by its subject.
        caller: {parts: ["header:Authorization"]}
        retention: 24h                            # responses are replayed for as long
        # A complete response is stored, also a 500, since a backend may have charged before it failed. Where yours
        # rolls back on 500, say so:
        # outcomes: {retry: [500]}

    """
  }

  private var storeMembers: String {
    guard store != "embedded" else {
      return """
          kind: embedded                            # one file, one process; several nodes share a Redis instead:
          path: semel.db                            # kind: redis, url: "redis://127.0.0.1:6379/0"
        """
    }
    return """
        kind: redis                               # it must not evict, and should append to a file: `semel check --live`
        url: \(Self.quoted(store))
        # username: semel                         # rather than a password in the url
        # password_file: /run/secrets/redis
      """
  }

  /// A text as a YAML string. Of two dollar signs the first would be taken for an escape.
  private static func quoted(_ text: String) -> String {
    let escaped = text.replacing("$$", with: "$$$$").replacing("\\", with: "\\\\")
    return "\"" + escaped.replacing("\"", with: "\\\"") + "\""
  }
}
