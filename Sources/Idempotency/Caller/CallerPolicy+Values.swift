import NIOCore
import Wire

extension CallerPart {
  /// The name by which an operator gives the authority of a client's certificate, besides the parts.
  static let authority = "client_ca_name"

  /// The name by which an operator gives the issuer of a caller's token, besides the parts.
  static let issuer = "jwt_issuer"

  /// The text between alternatives. Without its spaces it may belong to a name.
  public static let separator = " | "

  /// The part's name in the configuration and, of each alternative by itself, in an operator's request.
  public var text: String {
    switch self {
    case .header(let name): "header:\(name)"
    case .cookie(let name): "cookie:\(name)"
    case .query(let name): "query:\(name)"
    case .json(let pointer): "json:\(pointer)"
    case .jwt(let claim, let place): "jwt:\(claim)\(place.text)"
    case .basicUser: "basic:user"
    case .signingKey: "sigv4:access_key"
    case .address: "address"
    case .clientCertificate(.identity): "client_certificate"
    case .clientCertificate(let part): "client_certificate:\(part.rawValue)"
    case .either(let parts): parts.map(\.text).joined(separator: Self.separator)
    case .optional(let part): part.text.replacing(":", with: "?:", maxReplacements: 1)
    }
  }

  /// The kinds of parts that may be optional.
  public static let optionalKinds = ["header", "cookie", "query", "json", "jwt"]

  /// The text of a part in the letters of the configuration: the names of header fields in lower case. A part that may
  /// be missing is named like any other.
  public static func normalized(_ part: String) -> String {
    var part = part
    if let mark = part.firstIndex(of: "?"), part[mark...].hasPrefix("?:"),
      optionalKinds.contains(part[..<mark].lowercased())
    {
      part.remove(at: mark)
    }
    let lowercased = part.lowercased()
    if lowercased.hasPrefix("header:") { return lowercased }
    guard part.hasPrefix("jwt:"), let place = part.firstRange(of: "@header:") else { return part }
    return part[..<place.lowerBound] + part[place.lowerBound...].lowercased()
  }
}

extension CallerPolicy {
  /// The reason why the values that an operator gives do not identify a caller.
  public enum ValueFault: Error, Hashable, Sendable {
    /// The route's caller has no such part.
    case unknown(String)
    /// The part is given twice, in other letters.
    case repeated(String)
    /// The route's tokens have another issuer, which is this one.
    case otherIssuer(String)
    /// A request with these values is refused, or no request can have them.
    case refused(CallerFault)
  }

  /// The caller with these values, which is the same as that of a request with them. An empty value is a missing one.
  ///
  /// Each value is judged as that of a request: a field's without the spaces around it, an address in its canonical
  /// form. The caller of a value that no request can have would be nobody's.
  ///
  /// - Parameter values: The values by the texts of the parts, and of alternatives one by one. The names of header
  ///   fields may be in any case; all other names are taken as they are, since `query:userId` and `query:userid` are two
  ///   parts.
  public func caller(values: [String: String]) throws(ValueFault) -> Caller {
    var given: [String: String] = [:]
    for (part, value) in values {
      let name = CallerPart.normalized(part)
      guard given.updateValue(value, forKey: name) == nil else { throw .repeated(name) }
    }
    let plain = alternatives
    let issuer = plain.contains { $0.isOfToken } ? given.removeValue(forKey: CallerPart.issuer) : nil
    if let issuer, let own = self.issuer, issuer != own { throw .otherIssuer(own) }
    let authority =
      plain.contains { $0.isCertificate } ? given.removeValue(forKey: CallerPart.authority) : nil
    var builder = Caller.Builder()
    for part in parts {
      let finding = addFirst(of: part.alternatives) { part in
        add(
          part, text: given[part.text] ?? "", issuer: issuer ?? self.issuer ?? "", authority: authority,
          to: &builder)
      }
      if let fault = settle(finding, of: part, in: &builder) { throw .refused(fault) }
    }
    if let more = given.keys.filter({ name in !plain.contains { $0.text == name } }).min() {
      throw .unknown(more)
    }
    return builder.caller
  }

  /// Adds a part as a request with this value has it.
  private func add(
    _ part: CallerPart, text: String, issuer: String, authority: String?, to builder: inout Caller.Builder
  ) -> Finding {
    switch part {
    case .header(let name):
      guard let head = Self.head(name, text) else { return .fault(.unreadable(part)) }
      return add(part, head.find(name), of: head, to: &builder)
    case .cookie(let name):
      // A semicolon ends the cookie.
      guard !text.utf8.contains(UInt8(ascii: ";")), let head = Self.head("cookie", "\(name)=\(text)") else {
        return .fault(.unreadable(part))
      }
      return add(part, head.findCookie(name), of: head, to: &builder)
    case .query, .json: return add(part, reading: .text(text), to: &builder)
    case .jwt:
      let framed = [UInt8].framed(issuer: Array(issuer.utf8), value: Array(text.utf8))
      return add(part, reading: text.isEmpty ? .none : .key(framed), to: &builder)
    case .basicUser:
      // A colon ends the user's name.
      guard !text.utf8.contains(UInt8(ascii: ":")) else { return .fault(.unreadable(part)) }
      return add(part, reading: .text(text), to: &builder)
    case .signingKey:
      guard text.isEmpty || SigningKey.isOne(text) else { return .fault(.unreadable(part)) }
      return add(part, reading: .text(text), to: &builder)
    case .address:
      let address = IPAddress(text)?.text
      guard text.isEmpty || address != nil else { return .fault(.unreadable(part)) }
      return add(part, text: address, to: &builder)
    case .clientCertificate(let wanted):
      let value = CertificateIdentity(text, of: wanted)?.value(wanted)
      guard text.isEmpty || value != nil else { return .fault(.unreadable(part)) }
      return add(part, text: value, under: authority, to: &builder)
    case .either, .optional: invariantBroken("a part within a part of several forms")
    }
  }

  /// The head of a request with this field; `nil` if none can have it.
  private static func head(_ name: String, _ value: String) -> MessageHead? {
    guard var head = try? MessageHead(method: "GET", target: "/") else { return nil }
    let trimmed = ByteBuffer(string: value).withUnsafeReadableBytes {
      String(decoding: MessageHead.trimmed($0[...]), as: UTF8.self)
    }
    guard (try? head.append(name: name, value: trimmed)) != nil else { return nil }
    return head
  }
}

extension KeyReading {
  /// The reading of a value that is this text.
  fileprivate static func text(_ text: String) -> KeyReading { text.isEmpty ? .none : .key(Array(text.utf8)) }
}

extension CertificateIdentity {
  /// The identity with this value for a part of the caller; `nil` if no certificate has it.
  fileprivate init?(_ value: String, of part: CallerPart.CertificatePart) {
    guard !value.isEmpty else { return nil }
    let prefix = "subject:"
    switch part {
    case .subject: self.init(subject: value, names: [])
    case .identity where value.hasPrefix(prefix) && value != prefix:
      self.init(subject: String(value.dropFirst(prefix.count)), names: [])
    case .identity, .san:
      let kinds = ["uri:", "dns:", "email:"]
      let names = value.split(separator: "\0", omittingEmptySubsequences: false)
      guard let kind = kinds.first(where: value.hasPrefix),
        names.allSatisfy({ $0.hasPrefix(kind) && $0 != kind })
      else { return nil }
      let own = names.map { $0.dropFirst(kind.count) }.map(String.init)
      self.init(
        subject: nil,
        names: Self.names(
          uris: kind == "uri:" ? own : [], hosts: kind == "dns:" ? own : [],
          mails: kind == "email:" ? own : []))
    }
  }
}
