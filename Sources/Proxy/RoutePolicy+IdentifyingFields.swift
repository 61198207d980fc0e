import Idempotency

extension RoutePolicy {
  /// The request fields that say who the caller is and under which key: what `Connection` may not name.
  var identifyingFields: [String] {
    let keys = key.from.compactMap { source in
      if case .header(let name) = source { name } else { nil }
    }
    let callers = (caller?.parts ?? []).compactMap { part in
      switch part {
      case .header(let name): name
      case .cookie: "cookie"
      case .address, .clientCertificate: nil
      }
    }
    return keys + callers
  }
}
