/// Every parser that meets the bytes of strangers, with the invariants that hold whatever they are.
enum Target: String, CaseIterable {
  case requests, responses, http2, targets
  case proxyHeader = "proxy-header"
  case keys, callers, tokens, json, graphql, forms, multipart
  case forwarded, redis, records, rows, envelopes, settings

  /// The rule that these bytes break, in words.
  func fault(in bytes: [UInt8]) -> String? {
    switch self {
    case .requests: Self.requestsFault(in: bytes)
    case .responses: Self.responsesFault(in: bytes)
    case .http2: Self.http2Fault(in: bytes)
    case .targets: Self.targetsFault(in: bytes)
    case .proxyHeader: Self.proxyHeaderFault(in: bytes)
    case .keys: Self.keysFault(in: bytes)
    case .callers: Self.callersFault(in: bytes)
    case .tokens: Self.tokensFault(in: bytes)
    case .json: Self.jsonFault(in: bytes)
    case .graphql: Self.graphqlFault(in: bytes)
    case .forms: Self.formsFault(in: bytes)
    case .multipart: Self.multipartFault(in: bytes)
    case .forwarded: Self.forwardedFault(in: bytes)
    case .redis: Self.redisFault(in: bytes)
    case .records: Self.recordsFault(in: bytes)
    case .rows: Self.rowsFault(in: bytes)
    case .envelopes: Self.envelopesFault(in: bytes)
    case .settings: Self.settingsFault(in: bytes)
    }
  }
}
