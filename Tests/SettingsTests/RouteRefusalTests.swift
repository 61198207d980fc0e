import Testing

struct RouteRefusalTests {
  /// The column at which `route` puts the first character of its members.
  private let offset = 48

  @Test(arguments: [
    (
      "profile: strype", 9, "profile",
      "must be ietf, stripe, paypal, square, aip155, adyen, acp, repeatability, wunderlist or webhook"
    ),
    ("idempotency: on", 13, "idempotency", "must be required, optional or off"),
    ("mismatch_status: 404", 17, "mismatch_status", "must be 409, 422 or 400"),
    ("in_flight_status: 400", 18, "in_flight_status", "must be 409, 425, 429 or 503"),
    ("forward_key: hide", 13, "forward_key", "must be keep, drop or {rename: NAME}"),
    (
      "forward_key: {rename: Host}", 22, "forward_key.rename",
      "names a field that has a meaning of its own; write another name, such as X-Original-Key"
    ),
    (
      "forward_key: drop, key: {from: [\"query:k\"]}", 13, "forward_key",
      "has no effect, since no header is by itself a source in key.from; take it out"
    ),
    (
      "forward_key: {rename: X-Region}, fingerprint: {headers: [X-Region]}", 13, "forward_key",
      "would put the key in the place of x-region, which the route reads; write another name, such as X-Original-Key"
    ),
    (
      "forward_key: {rename: X-Idempotency-Key}", 22, "forward_key.rename",
      "names a field for which Go repeats a request, as for Idempotency-Key; write another name, such as X-Original-Key"
    ),
    (
      "forward_key: drop, idempotency: off", 13, "forward_key",
      "has no effect with idempotency: off, which looks for no key; take one of them out"
    ),
    ("echo_key: maybe", 10, "echo_key", "must be true or false"),
    ("max_waiters: 0", 13, "max_waiters", "must be a whole number from 1 to 100000"),
    ("lease: 999ms", 7, "lease", "must be at least 1s"),
    ("retention: 0s", 11, "retention", "must be at least 1s"),
    ("remember: 1h", 10, "remember", "must not be shorter than retention: 1h against 1d"),
    (
      "remember: 2d, retention: 3d", 10, "remember",
      "must not be shorter than retention: 2d against 3d"
    ),
    ("duplicates: drop", 12, "duplicates", "must be wait or reject"),
    (
      "endpoint: host", 10, "endpoint", "must be path, route or a section such as {host: any}"
    ),
    ("endpoint: {host: all}", 17, "endpoint.host", "must be own or any"),
    ("encoded_slashes: allow", 17, "encoded_slashes", "must be refuse or keep"),
    ("behind: keys", 8, "behind", "must be nothing or own_keys"),
    ("on_unknown: guess", 12, "on_unknown", "must be hold, retry or reconcile"),
    ("on_store_failure: ajar", 18, "on_store_failure", "must be closed or open"),
    ("body_timeout: 0s", 14, "body_timeout", "must be at least 1ms"),
    ("set_cookie: eat", 12, "set_cookie", "must be drop or keep"),
    ("record: body", 8, "record", "must be response or status"),
    (
      "replay: {drop: [a b]}", 16, "replay.drop[0]",
      "must name a header field, such as X-Request-Id, or the beginning of several, such as X-Trace-*"
    ),
    (
      "replay: {drop: [\"Content-*\"]}", 16, "replay.drop[0]",
      "leaves out content-type, without which a client cannot read the response; take it out"
    ),
    (
      "replay: {drop: [Set-Cookie]}", 16, "replay.drop[0]",
      "has a member of its own; take it out, and write set_cookie: drop"
    ),
    (
      "replay: {keep: [Retry-After]}", 16, "replay.keep[0]",
      "must be one of RateLimit*, X-RateLimit* and X-Rate-Limit*; the others are recorded, or never can be"
    ),
    (
      "replay: {keep: RateLimit}", 15, "replay.keep", "must be a list such as [RateLimit], not a single value"
    ),
    (
      "replay: {drop: X-Request-Id}", 15, "replay.drop",
      "must be a list such as [X-Request-Id], not a single value"
    ),
    (
      "replay: {drop: [RateLimit], keep: [RateLimit]}", 34, "replay.keep",
      "names ratelimit, which drop names, too; take one of them out"
    ),
    (
      "replay: {drop: [X-RateLimit-*], keep: [X-RateLimit-Limit]}", 38, "replay.keep",
      "names x-ratelimit-limit, which drop names, too; take one of them out"
    ),
    (
      "replay: {drop: [X-RateLimit-Limit], keep: [X-RateLimit-*]}", 42, "replay.keep",
      "names x-ratelimit-limit, which drop names, too; take one of them out"
    ),
    (
      "max_request_body: 512MiB", 18, "max_request_body",
      "must not exceed limits.body_memory, which is 256MiB"
    ),
    (
      "max_response_body: 512MiB", 19, "max_response_body",
      "must not exceed limits.body_memory, which is 256MiB"
    ),
    (
      "key: {from: []}", 12, "key.from",
      "must name at least one source: header:NAME, query:NAME, json:/pointer, form:NAME or payload"
    ),
    (
      "key: {from: [X-Key]}", 13, "key.from[0]",
      "must be header:NAME, query:NAME, json:/pointer, form:NAME or payload; did you mean header:X-Key?"
    ),
    (
      "key: {from: [\"query:a\", [\"query:b\", c]]}", 36, "key.from[1][1]",
      "must be header:NAME, query:NAME, json:/pointer, form:NAME or payload; did you mean header:c?"
    ),
    (
      "key: {from: [[\"query:a\", payload]]}", 25, "key.from[0][1]",
      "is a key by itself; take it out of this list"
    ),
    (
      "key: {from: [[\"query:a\"]]}", 13, "key.from[0]",
      "must have two parts or more, which make one key; write a single one without a list"
    ),
    (
      "key: {from: [[]]}", 13, "key.from[0]",
      "must have two parts or more, which make one key; write a single one without a list"
    ),
    (
      "key: {from: [[\"query:a\", \"query:a\"]]}", 25, "key.from[0][1]",
      "is given twice, first in line 2; take one of them out"
    ),
    (
      "key: {from: [\"header:A\", \"header:a\"]}", 25, "key.from[1]",
      "is given twice, first in line 2; take one of them out"
    ),
    (
      "key: {from: [[\"query:a\", \"query:b\"], [\"query:a\", \"query:b\"]]}", 37, "key.from[1]",
      "is given twice, first in line 2; take one of them out"
    ),
    (
      "fingerprint: {headers: [a, A]}", 27, "fingerprint.headers[1]",
      "is given twice, first in line 2; take one of them out"
    ),
    (
      "fingerprint: {ignore: [/a, /a]}", 27, "fingerprint.ignore[1]",
      "is given twice, first in line 2; take one of them out"
    ),
    (
      "match: {methods: [POST, POST]}", 24, "match.methods[1]",
      "is given twice, first in line 2; take one of them out"
    ),
    (
      "key: {from: [[\"query:a\", [\"query:b\", \"query:c\"]]]}", 25, "key.from[0][1]",
      "must be a part, not a list"
    ),
    (
      "key: {from: [payload, \"query:a\"]}", 13, "key.from[0]",
      "yields a key for every request, so that no later source counts; write it last"
    ),
    ("key: {from: [\"header:a b\"]}", 13, "key.from[0]", "must name a header field, such as X-Request-Id"),
    (
      "key: {from: [\"header:\"]}", 13, "key.from[0]",
      "must be header:NAME, query:NAME, json:/pointer, form:NAME or payload"
    ),
    (
      "key: {from: [\"json:id\"]}", 13, "key.from[0]",
      "must be a JSON pointer that begins with a slash, such as /order/id (~1 for a slash, ~0 for ~)"
    ),
    (
      "key: {min_length: 9, max_length: 8}", 18, "key.min_length",
      "must not exceed max_length: 9 against 8"
    ),
    (
      "key: {min_length: 300}", 18, "key.min_length", "must not exceed max_length: 300 against 255"
    ),
    ("key: {min_length: 0}", 18, "key.min_length", "must be a whole number from 1 to 8000"),
    ("key: {format: ulid}", 14, "key.format", "must be any or uuid"),
    ("fingerprint: {body: json}", 20, "fingerprint.body", "must be auto, raw or none"),
    (
      "fingerprint: {headers: [\"a:\"]}", 24, "fingerprint.headers[0]",
      "must name a header field, such as X-Request-Id"
    ),
    (
      "fingerprint: {ignore: [\"/a~2\"]}", 23, "fingerprint.ignore[0]",
      "must be a JSON pointer that begins with a slash, such as /order/id (~1 for a slash, ~0 for ~)"
    ),
    ("match: {methods: POST}", 17, "match.methods", "must be a list such as [POST], not a single value"),
    (
      "match: {methods: []}", 17, "match.methods",
      "must name a method; leave methods out for all but GET, HEAD, OPTIONS and TRACE"
    ),
    ("match: {methods: [post]}", 18, "match.methods[0]", "must be a method in capitals, such as POST"),
    (
      "match: {methods: [ALL]}", 18, "match.methods[0]",
      "is no method; leave methods out for all but GET, HEAD, OPTIONS and TRACE"
    ),
    (
      "match: {methods: [\"*\"]}", 18, "match.methods[0]",
      "is no method; leave methods out for all but GET, HEAD, OPTIONS and TRACE"
    ),
    ("match: {methods: [PSOT]}", 18, "match.methods[0]", "is no known method; did you mean POST?"),
    ("match: {methods: [EXECUTE]}", 18, "match.methods[0]", "is no known method; write one such as POST"),
    (
      "match: {methods: [CONNECT]}", 18, "match.methods[0]",
      "is refused before a route is looked for; take it out"
    ),
    (
      "match: {path: /orders/:id/x}", 14, "match.path",
      "is in the notation of another framework; write /orders/{id}/x ({name} is one segment, ** at the end is the rest)"
    ),
    (
      "match: {headers: {\"a b\": c}}", 18, "match.headers.a b",
      "must name a header field, such as X-Request-Id"
    ),
    (
      "match: {headers: {a: \" b\"}}", 21, "match.headers.a",
      "must be a header's whole value, without spaces around it"
    ),
    (
      "match: {headers: {}}", 17, "match.headers",
      "must name a header: write a mapping such as {X-Api-Version: \"2\"}"
    ),
    (
      "match: {headers: {X-A: b, x-a: c}}", 26, "match.headers.x-a",
      "is the same header as in line 2, in other letters; take one of them out"
    ),
    (
      "match: {headers: {X-A: b, X-A: c}}", 26, "match.headers.X-A",
      "is given twice, first in line 2; take one of them out"
    ),
    (
      "match: {headers: {X_A: b}}", 18, "match.headers.X_A",
      "does not reach the backend because of its underscore; write underscores: pass at the top, or go by another header"
    ),
    (
      "match: {host: \"1.2.3\"}", 14, "match.host",
      "must be one host name without a port, such as api.example.com or *.example.com"
    ),
    ("match: {graphql: query}", 17, "match.graphql", "must be mutation"),
    (
      "match: {methods: [POST, GET], graphql: mutation}", 17, "match.methods",
      "has GET, but graphql goes by the body, in which POST sends its mutation; take GET out"
    ),
    (
      "match: {path: /g, graphql: mutation}, idempotency: off", 7, "match",
      "has graphql: mutation, but the route protects nothing; take that out, or write idempotency: required"
    ),
    (
      "shadow: true, idempotency: off", 8, "shadow",
      "has no effect with idempotency: off, which keeps no records; take one of them out"
    ),
    ("shadow: maybe", 8, "shadow", "must be true or false"),
    (
      "fingerprint: {body: raw, explain: true}", 34, "fingerprint.explain",
      "needs body: auto, which alone compares JSON by members; set that, or remove explain"
    ),
    ("spelling: strict", 10, "spelling", "must be lenient, caseless or exact"),
    ("content_coding: gzip", 16, "content_coding", "must be identity or pass"),
    ("match: {path: v1}", 14, "match.path", "must begin with a slash, such as /v1/orders/{id} or /v1/**"),
    (
      "match: {host: \"h:80\"}", 14, "match.host",
      "must be one host name without a port, such as api.example.com or *.example.com"
    ),
    (
      "match: {host: \"*.*.h\"}", 14, "match.host",
      "must be one host name without a port, such as api.example.com or *.example.com"
    ),
    (
      "match: {host: \"*\"}", 14, "match.host",
      "must be one host name without a port, such as api.example.com or *.example.com"
    ),
    (
      "outcomes: {retry: [600]}", 19, "outcomes.retry[0]",
      "must be a status from 200 to 599, or a class from 2xx to 5xx"
    ),
    (
      "outcomes: {retry: [6xx]}", 19, "outcomes.retry[0]",
      "must be a status from 200 to 599, or a class from 2xx to 5xx"
    ),
    (
      "outcomes: {retry: [50]}", 19, "outcomes.retry[0]",
      "must be a status from 200 to 599, or a class from 2xx to 5xx"
    ),
    (
      "outcomes: {final: [500], retry: [500]}", 33, "outcomes.retry[0]",
      "is listed under final too; a status belongs to one class"
    ),
    (
      "outcomes: {retry: [5xx], unknown: [5XX]}", 35, "outcomes.unknown[0]",
      "is listed under retry too; a status belongs to one class"
    ),
    (
      "outcomes: {retry: [101]}", 19, "outcomes.retry[0]",
      "must be a status from 200 to 599, or a class from 2xx to 5xx"
    ),
    (
      "outcomes: {retry: [1xx]}", 19, "outcomes.retry[0]",
      "must be a status from 200 to 599, or a class from 2xx to 5xx"
    ),
    (
      "match: {headers: {Host: h}}", 18, "match.headers.Host",
      "names the host, which is part of the endpoint; take it out, or write match.host for one host"
    ),
    (
      "key: {from: [\"header:Idempotency-Key\", \"header:host\"]}", 39, "key.from[1]",
      "names the host, which is part of the endpoint; take it out, or write match.host for one host"
    ),
    (
      "key: {format: uuid, max_length: 10}", 32, "key.max_length",
      "lets no UUID pass, which has 36 characters; allow that length, or write format: any"
    ),
    (
      "key: {format: uuid, min_length: 37}", 32, "key.min_length",
      "lets no UUID pass, which has 36 characters; allow that length, or write format: any"
    ),
    (
      "fingerprint: {body: raw, ignore: [/a]}", 33, "fingerprint.ignore",
      "is for body: auto alone; take it out, or write body: auto"
    ),
    (
      "fingerprint: {body: none, ignore: [/a]}", 34, "fingerprint.ignore",
      "is for body: auto alone; take it out, or write body: auto"
    ),
    (
      "outcomes: {deleted: [404]}", 11, "outcomes.deleted",
      "is for rules alone: write all of outcomes as rules, such as [{status: 404, is: deleted}]"
    ),
    ("outcomes: {done: [500]}", 11, "outcomes.done", "unknown member; allowed are final, retry, unknown"),
  ]) func `a route with a fault is refused`(members: String, column: Int, path: String, message: String) {
    #expect(issues(route(members)) == ["2:\(offset + column): routes[0].\(path): \(message)"])
  }

  @Test(arguments: [
    "Connection", "content-length", "Transfer-Encoding", "Keep-Alive", "TE", "Trailer", "Upgrade", "Expect",
    "Proxy-Authorization", "Idempotency-Request-Id", "Idempotency-Attempt", "Idempotency-Outcome",
  ]) func `a field that differs between deliveries identifies no request`(name: String) {
    let reason =
      "names a field of the connection, of one message or of Semel, which may differ from one delivery of a request "
      + "to the next; name one that the client sets for the request"
    let places = [
      ("key: {from: [\"header:\(name)\"]}", 13, "key.from[0]"),
      ("match: {headers: {\(name): a}}", 18, "match.headers.\(name)"),
      ("fingerprint: {headers: [\(name)]}", 24, "fingerprint.headers[0]"),
    ]
    for (members, column, path) in places {
      #expect(issues(route(members)) == ["2:\(offset + column): routes[0].\(path): \(reason)"])
    }
    let caller = upstream + "routes: [{name: r, caller: {parts: [\"header:\(name)\"]}}]"
    #expect(issues(caller) == ["2:37: routes[0].caller.parts[0]: \(reason)"])
  }

  @Test(arguments: [
    (
      "parts: []", 36, "caller.parts",
      "must name at least one part: \(callerForms)"
    ),
    (
      "parts: [me]", 37, "caller.parts[0]",
      "must be \(callerForms); "
        + "did you mean header:me?"
    ),
    (
      "parts: [\"query:\"]", 37, "caller.parts[0]", "must name a query parameter, such as query:account"
    ),
    (
      "parts: [\"json:account\"]", 37, "caller.parts[0]",
      "must be a JSON pointer that begins with a slash, such as /order/id (~1 for a slash, ~0 for ~)"
    ),
    (
      "shared: true, anonymous: allow", 43, "caller.anonymous",
      "has no effect with shared: true, which makes all clients one caller; take one of them out"
    ),
    ("shared: perhaps, parts: [address]", 37, "caller.shared", "must be true or false"),
    (
      "shared: false", 28, "caller",
      "must have parts that say who the caller is: "
        + "\(callerForms); or shared: true for all clients"
    ),
    (
      "parts: [\"user:x\"]", 37, "caller.parts[0]",
      "must be \(callerForms)"
    ),
    ("parts: [\"cookie:a=b\"]", 37, "caller.parts[0]", "must name a cookie, such as cookie:session"),
    (
      "parts: [address], schemes: [\"a b\"]", 57, "caller.schemes[0]",
      "must be a scheme of Authorization, such as GNAP"
    ),
    (
      "parts: [address], schemes: [GNAP]", 56, "caller.schemes",
      "is for the part header:Authorization alone; add that to parts, or take schemes out"
    ),
    ("parts: [address], anonymous: maybe", 58, "caller.anonymous", "must be refuse or allow"),
  ]) func `a caller with a fault is refused`(members: String, column: Int, path: String, message: String) {
    let text = upstream + "routes: [{name: r, caller: {\(members)}}]"
    #expect(issues(text) == ["2:\(column): routes[0].\(path): \(message)"])
  }
}
