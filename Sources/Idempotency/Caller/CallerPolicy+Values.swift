extension CallerPart {
  /// The name by which an operator gives the authority of a client's certificate, besides the parts.
  static let authority = "client_ca_name"

  /// The name by which an operator gives the issuer of a caller's token, besides the parts.
  static let issuer = "jwt_issuer"

  /// The part's name in the configuration and in an operator's request.
  public var text: String {
    switch self {
    case .header(let name): "header:\(name)"
    case .cookie(let name): "cookie:\(name)"
    case .query(let name): "query:\(name)"
    case .json(let pointer): "json:\(pointer)"
    case .jwt(let claim): "jwt:\(claim)"
    case .address: "address"
    case .clientCertificate(.identity): "client_certificate"
    case .clientCertificate(let part): "client_certificate:\(part.rawValue)"
    }
  }
}

extension CallerPolicy {
  /// The reason why the values that an operator gives do not identify a caller.
  public enum ValueFault: Error, Hashable, Sendable {
    case missing(String)
    case unknown(String)
  }

  /// The caller with these values, which is the same as that of a request with them. An empty value is a missing one.
  ///
  /// - Parameter values: The values by the parts' texts. The names of header fields may be in any case; all other names
  ///   are taken as they are, since `query:userId` and `query:userid` are two parts.
  public func caller(values: [String: String]) throws(ValueFault) -> Caller {
    var left = Dictionary(
      values.map { (Self.normalized($0.key), $0.value) }, uniquingKeysWith: { first, _ in first })
    let issuer = parts.contains { $0.isOfToken } ? left.removeValue(forKey: CallerPart.issuer) : nil
    let authority = parts.contains { $0.isCertificate } ? left.removeValue(forKey: CallerPart.authority) : nil
    var builder = Caller.Builder()
    for part in parts {
      var value = left.removeValue(forKey: part.text)
      if anonymous == .refuse, value?.isEmpty ?? true { throw .missing(part.text) }
      switch part {
      case .header(let name): Self.add(.header, name, &value, to: &builder)
      case .cookie(let name): Self.add(.cookie, name, &value, to: &builder)
      case .query(let name): Self.add(.query, name, &value, to: &builder)
      case .json(let pointer): Self.add(.json, pointer, &value, to: &builder)
      case .jwt(let claim):
        Self.add(.jwt, claim, &value, by: issuer ?? self.issuer ?? "", to: &builder)
      case .address: Self.add(.address, "", &value, to: &builder)
      case .clientCertificate(let part):
        let name = part.name(under: value?.isEmpty ?? true ? nil : authority)
        Self.add(.clientCertificate, name, &value, to: &builder)
      }
    }
    if let more = left.keys.min() { throw .unknown(more) }
    return builder.caller
  }

  private static func normalized(_ part: String) -> String {
    let lowercased = part.lowercased()
    return lowercased.hasPrefix("header:") ? lowercased : part
  }

  private static func add(
    _ kind: Caller.Kind, _ name: String, _ value: inout String?, by issuer: String,
    to builder: inout Caller.Builder
  ) {
    guard let text = value, !text.isEmpty else { return builder.part(kind, name: name, value: nil) }
    [UInt8].framed(issuer: Array(issuer.utf8), value: Array(text.utf8)).withUnsafeBytes {
      builder.part(kind, name: name, value: $0)
    }
  }

  private static func add(
    _ kind: Caller.Kind, _ name: String, _ value: inout String?, to builder: inout Caller.Builder
  ) {
    guard var text = value, !text.isEmpty else { return builder.part(kind, name: name, value: nil) }
    text.withUTF8 { builder.part(kind, name: name, value: UnsafeRawBufferPointer($0)) }
  }
}
