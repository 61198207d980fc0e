/// The fields and the parameters of the options that are confidential, or know a caller.
extension Setup {
  /// True if a name is that of a credential. A request of nobody goes without these fields.
  static func isCredential(_ name: String) -> Bool {
    let name = normalized(name)
    return credentialMarks.contains { name.contains($0) }
      || name.split(separator: "-").contains { credentialWords.contains(String($0)) }
  }

  private static let credentialMarks = [
    "apikey", "accesskey", "authoriz", "authentic", "cookie", "credential", "csrf", "password", "secret",
    "session", "signature", "token", "xsrf",
  ]
  private static let credentialWords: Set = [
    "auth", "hmac", "jwt", "key", "otp", "pass", "passwd", "pin", "pwd", "sid", "sig",
  ]

  /// The fields that are commonly the same for all callers, and no secret of any. All others are redacted.
  private static let neutralFields: Set = [
    "accept", "cache-control", "date", "dnt", "origin", "pragma", "prefer", "priority", "te",
    "traceparent", "tracestate", "user-agent", "x-http-method-override", "x-requested-with",
  ]

  /// The parameters that are commonly the same for all callers, and no secret of any. All others are redacted.
  private static let neutralParameters: Set = [
    "dry-run", "expand", "fields", "format", "include", "lang", "limit", "locale", "offset", "order", "page",
    "page-size", "per-page", "sort", "v", "validate", "version",
  ]

  static func isNeutralField(_ name: String) -> Bool {
    let name = normalized(name)
    return neutralFields.contains(name) || name.hasPrefix("accept-") || name.hasPrefix("content-")
      || name.hasSuffix("-version")
  }

  static func isNeutralParameter(_ name: String) -> Bool {
    let name = normalized(name)
    return neutralParameters.contains(name) || name.hasSuffix("-version")
  }

  /// A value that no report may show.
  struct ConfidentialValue {
    var text: String
    /// True if its name says that it is one. Any other value may be a word that the report needs elsewhere.
    var isCredential: Bool
  }

  /// The values that no report may show.
  var secrets: [ConfidentialValue] {
    headers.filter { !Self.isNeutralField($0.name) }
      .map { ConfidentialValue(text: $0.value, isCredential: Self.isCredential($0.name)) }
      + [otherCaller].compactMap(\.self).map { ConfidentialValue(text: $0.value, isCredential: true) }
      + endpoint.query.filter { !Self.isNeutralParameter($0.name) }.map { parameter in
        // A parameter without a value may be the secret itself.
        let text = parameter.value.isEmpty ? parameter.name : parameter.value
        return ConfidentialValue(text: text, isCredential: Self.isCredential(parameter.name))
      }
  }

  /// The names of the fields whose values no report may show, in lower case.
  var secretFields: Set<String> {
    Set(
      (headers.filter { !Self.isNeutralField($0.name) } + [otherCaller].compactMap(\.self)).map {
        $0.name.lowercased()
      })
  }

  /// The names of the parameters whose values no report may show.
  var secretParameters: Set<String> {
    Set(endpoint.query.map(\.name).filter { !Self.isNeutralParameter($0) })
  }

  /// The part of a request that knows the caller, as a configuration names it, such as `header:Authorization`; `nil` if
  /// the options name none that stays the same from delivery to delivery.
  var callerPart: String? {
    let fields = headers.map(\.name).filter(Self.mayBeCaller)
    let named = [otherCaller?.name].compactMap(\.self).filter { !Self.isForNextProxy($0) }
    let others = fields.filter { !Self.isCredential($0) && !Self.isNeutralField($0) }
    if let field = (named + fields.filter(Self.isCredential) + others).first { return "header:\(field)" }
    let parameter = endpoint.query.first {
      !$0.value.isEmpty && Self.isCredential($0.name) && Self.mayBeCaller($0.name)
    }
    return parameter.map { "query:\($0.name)" }
  }

  /// True if an option may say who the caller is, be it with a value that no configuration can go by.
  var mayNameCaller: Bool {
    otherCaller != nil
      || headers.contains { !Self.isNeutralField($0.name) && !Self.isForNextProxy($0.name) }
      || endpoint.query.contains { Self.isCredential($0.name) }
  }

  /// True if a field can be a part of the caller: one for the next proxy alone may not be, and a proof of one delivery
  /// or of one page would make each retry another caller's.
  private static func mayBeCaller(_ name: String) -> Bool {
    let marks = [
      "csrf", "xsrf", "signature", "hmac", "nonce", "timestamp", "request-id", "correlation-id", "otp",
    ]
    let normal = normalized(name)
    return !isForNextProxy(name) && !marks.contains { normal.contains($0) }
      && !normal.split(separator: "-").contains("sig")
  }

  private static func isForNextProxy(_ name: String) -> Bool { name.lowercased() == "proxy-authorization" }
}
