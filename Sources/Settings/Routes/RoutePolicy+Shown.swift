import Idempotency

extension RoutePolicy {
  /// The route's complete settings, with those from `defaults` and from the built-in defaults.
  var shown: Shown {
    [
      "name": .text(name),
      "match": match.shown,
      "upstream": .text(upstream.name),
      "profile": profile.map { .word($0) },
      "idempotency": .word(idempotency),
      "key": key.shown,
      "caller": caller?.shown,
      "endpoint": .word(endpoint),
      "spelling": .word(spelling),
      "content_coding": .word(contentCoding),
      "fingerprint": [
        "body": .word(recipe.body), "headers": .texts(recipe.headers), "ignore": .texts(recipe.ignore),
        "explain": .flag(explainsMismatch),
      ],
      "mismatch_status": .number(mismatchStatus),
      "duplicates": .word(duplicates),
      "wait_timeout": .span(waitTimeout),
      "max_waiters": .number(maxWaiters),
      "lease": .span(lease),
      "retention": .span(retention),
      "remember": .span(remember),
      "unknown_retention": .span(unknownRetention),
      "outcomes": outcomes.shown,
      "behind": .word(behind),
      "on_unknown": .word(onUnknown),
      "reconcile": reconcile?.shown,
      "max_attempts": .number(maxAttempts ?? 0),
      "retries": retries?.shown ?? .text("off"),
      "on_store_failure": .word(onStoreFailure),
      "max_request_body": .size(maxRequestBody),
      "max_response_body": .size(maxResponseBody),
      "set_cookie": .word(setCookie),
      "response_timeout": .span(timeToResponse),
      "stream": .flag(stream),
      "cors": cors?.shown ?? .flag(false),
      "batch": batch?.shown,
      "shadow": .flag(shadow),
    ]
  }
}

extension CORSPolicy {
  fileprivate var shown: Shown {
    origins.isEmpty ? .flag(true) : ["origins": .texts(origins), "credentials": .flag(credentials)]
  }
}

extension RouteMatch {
  fileprivate var shown: Shown {
    [
      "methods": methods.isEmpty ? nil : .texts(methods), "path": path.map { .text($0.text) },
      "host": host.map(Shown.text),
      // A value may be a secret that a gateway adds.
      "headers": headers.isEmpty
        ? nil : .members(headers.map { Shown.Member($0.name, .text("(not shown)")) }),
      "graphql": graphql.map { .word($0) },
    ]
  }
}

extension BatchPolicy {
  fileprivate var shown: Shown {
    [
      "items": .text(items), "key": .text(key), "results": .text(results), "max_items": .number(maxItems),
    ]
  }
}

extension ReconcilePolicy {
  fileprivate var shown: Shown {
    [
      "path": .target(path),
      // Values are credentials.
      "headers": .members(headers.map { Shown.Member($0.name, .text("(not shown)")) }),
      "applied": .list(applied.map(Shown.number)), "absent": absent?.shown,
      "status": status.map(Shown.number),
    ]
  }
}

extension ReconcilePolicy.Absence {
  fileprivate var shown: Shown {
    [
      "status": .list(statuses.map(Shown.number)),
      "header": .members(headers.map { Shown.Member($0.name, .text($0.value)) }),
      "json": .members(members.map { Shown.Member($0.pointer, .text($0.value)) }),
    ]
  }
}

extension RetryPolicy {
  fileprivate var shown: Shown {
    [
      "max": .number(max), "backoff": .span(backoff), "max_backoff": .span(maxBackoff),
      "budget": .text("\(budget)%"), "on": .list(on.map(Shown.number)),
    ]
  }
}

extension KeyPolicy {
  fileprivate var shown: Shown {
    [
      "from": .list(from.map(\.shown)), "format": .word(format), "min_length": .number(minLength),
      "max_length": .number(maxLength),
    ]
  }
}

extension KeySource {
  fileprivate var shown: Shown {
    if case .composite(let parts) = self { .texts(parts.map(\.text)) } else { .text(text) }
  }
}

extension CallerPolicy {
  fileprivate var shown: Shown {
    isShared
      ? ["shared": .flag(true)]
      : [
        "parts": .texts(parts.map(\.text)), "anonymous": .word(anonymous), "schemes": .texts(schemes),
      ]
  }
}

extension OutcomeTable {
  /// The patterns that the route lists itself, which override the defaults.
  fileprivate var shown: Shown {
    .members(
      OutcomeClass.allCases.map { outcome in
        Shown.Member(outcome.rawValue, .list((own[outcome] ?? []).map(\.shown)))
      })
  }
}

extension OutcomeTable.Pattern {
  fileprivate var shown: Shown {
    switch self {
    case .status(let status): .number(status)
    case .hundred(let hundred): .text("\(hundred)xx")
    }
  }
}
