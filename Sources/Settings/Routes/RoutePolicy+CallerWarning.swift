import Idempotency

extension RoutePolicy {
  /// The reason why a retry may have another caller and run again; `nil` if a part of the caller stays the same.
  var callerWarning: String? {
    guard idempotency != .off, let parts = caller?.parts, parts.count == 1, let part = parts.first,
      part.mayChange
    else { return nil }
    return
      "its only part is \(part.text): where a client refreshes that between two deliveries, the retry is another "
      + "caller's and runs again; name what stays, such as an account or device header that a gateway sets (jwt:sub, "
      + "the token's subject, is not supported yet)"
  }
}

extension CallerPart {
  /// Whether the value is commonly replaced while its holder stays the same.
  fileprivate var mayChange: Bool {
    switch self {
    case .header(let name): name == "authorization"
    case .cookie(let name):
      ["sess", "sid", "auth", "token", "jwt"].contains { name.lowercased().contains($0) }
    case .address, .clientCertificate: false
    }
  }
}
