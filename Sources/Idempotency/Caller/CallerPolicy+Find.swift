import NIOCore
import Wire

extension CallerPolicy {
  /// The caller, as far as all but the body determines it; `nil` if a part of it is in the body.
  ///
  /// - Throws: `callerUnknown` with the first fault outside the body.
  public func callerBeforeBody(
    head: MessageHead, peer: CallerPeer, query: ByteBuffer?
  ) throws(Problem) -> Caller? {
    try build(head: head, peer: peer, query: query, body: nil)
  }

  /// The caller of a request.
  ///
  /// A part that is missing or empty makes the caller unknown or, where anonymous callers are allowed, is encoded as
  /// missing. A part that occurs twice or cannot be read always makes the caller unknown.
  ///
  /// - Throws: `callerUnknown` with the first fault.
  public func caller(
    head: MessageHead, peer: CallerPeer, query: ByteBuffer? = nil, body: ByteBuffer = ByteBuffer()
  ) throws(Problem) -> Caller {
    guard let caller = try build(head: head, peer: peer, query: query, body: body) else {
      invariantBroken("a caller is looked for in another body than its policy needs")
    }
    return caller
  }

  private func build(
    head: MessageHead, peer: CallerPeer, query: ByteBuffer?, body: ByteBuffer?
  ) throws(Problem) -> Caller? {
    var builder = Caller.Builder()
    var needsBody = false
    for part in parts {
      let finding = add(part, of: head, peer: peer, query: query, body: body, to: &builder)
      if case .inBody = finding { needsBody = true }
      if let fault = settle(finding, of: part, in: &builder) { throw .callerUnknown(fault) }
    }
    return needsBody ? nil : builder.caller
  }

  /// The result of adding a part to a caller.
  enum Finding {
    case added
    /// The part is missing or empty, and nothing was added.
    case missing
    /// The part is in the body, which is not looked at yet.
    case inBody
    case fault(CallerFault)
  }

  /// Adds a missing part as one, or refuses it.
  func settle(
    _ finding: Finding, of part: CallerPart, in builder: inout Caller.Builder
  ) -> CallerFault? {
    switch finding {
    case .added, .inBody: return nil
    case .fault(let fault): return fault
    case .missing:
      guard anonymous == .allow || part.isOptional else { return .missing(part) }
      let (kind, name) = part.encoding
      builder.part(kind, name: name, value: nil)
      return nil
    }
  }

  private func add(
    _ part: CallerPart, of head: MessageHead, peer: CallerPeer, query: ByteBuffer?, body: ByteBuffer?,
    to builder: inout Caller.Builder
  ) -> Finding {
    switch part {
    case .either(let parts):
      addFirst(of: parts) { addPlain($0, of: head, peer: peer, query: query, body: body, to: &builder) }
    case .optional(let part):
      addPlain(part, of: head, peer: peer, query: query, body: body, to: &builder)
    default: addPlain(part, of: head, peer: peer, query: query, body: body, to: &builder)
    }
  }

  /// Adds the first of several parts that is there. One that is at fault is there, but for credentials of a scheme that
  /// a later one may take.
  func addFirst(of parts: [CallerPart], _ add: (CallerPart) -> Finding) -> Finding {
    for (index, part) in parts.enumerated() {
      let finding = add(part)
      switch finding {
      case .missing: continue
      case .fault(let fault)
      where fault.isOfScheme && parts[(index + 1)...].contains(where: \.isInAuthorization):
        continue
      case .added, .inBody, .fault: return finding
      }
    }
    return .missing
  }

  private func addPlain(
    _ part: CallerPart, of head: MessageHead, peer: CallerPeer, query: ByteBuffer?, body: ByteBuffer?,
    to builder: inout Caller.Builder
  ) -> Finding {
    switch part {
    case .header(let name): return add(part, head.find(name), of: head, to: &builder)
    case .cookie(let name): return add(part, head.findCookie(name), of: head, to: &builder)
    case .query(let name): return add(part, reading: KeySource.readQuery(name, in: query), to: &builder)
    case .json(let pointer):
      guard let body else { return .inBody }
      return add(part, reading: Self.readJSON(pointer, in: body, of: head), to: &builder)
    case .jwt(let claim, let place): return add(part, claim, of: peer, at: place, to: &builder)
    case .basicUser, .signingKey: return add(part, credentialsOf: head, to: &builder)
    case .address: return add(part, text: peer.address, to: &builder)
    case .clientCertificate(let wanted):
      return add(
        part, text: peer.certificate?.value(wanted), under: peer.certificate?.authority, to: &builder)
    case .either, .optional: invariantBroken("a part within a part of several forms")
    }
  }

  // The following also judge the values that an operator gives, so that they have one rule.

  func add(
    _ part: CallerPart, _ finding: FieldFinding, of head: MessageHead, to builder: inout Caller.Builder
  ) -> Finding {
    switch finding {
    case .repeated: return .fault(.repeated(part))
    case .absent: return .missing
    case .once(let range):
      return head.withBytes(range) { value in
        guard part == .header("authorization") else { return add(part, value: value, to: &builder) }
        guard let scheme = Self.scheme(of: value) else {
          return isKnown(scheme: value) ? .missing : add(part, value: value, to: &builder)
        }
        guard isKnown(scheme: scheme), !(ASCII.equalsIgnoringCase(scheme, "token") && Self.hasNonce(value))
        else { return .fault(.unknownScheme) }
        return add(part, value: value, to: &builder)
      }
    }
  }

  /// A body that cannot be read is a fault and not a missing part: a backend may read what Semel cannot.
  private static func readJSON(
    _ pointer: String, in body: ByteBuffer, of head: MessageHead
  ) -> KeyReading {
    guard body.readableBytes > 0 else { return .none }
    guard !head.hasContentCoding else { return .fault(.wrongType) }
    return body.withUnsafeReadableBytes { KeySource.readJSON(pointer, in: $0) ?? .fault(.wrongType) }
  }

  func add(_ part: CallerPart, reading: KeyReading, to builder: inout Caller.Builder) -> Finding {
    switch reading {
    case .none: return .missing
    case .key(let bytes), .quoted(let bytes):
      return bytes.withUnsafeBytes { add(part, value: $0, to: &builder) }
    case .fault(.repeated): return .fault(.repeated(part))
    case .fault: return .fault(.unreadable(part))
    }
  }

  /// A token that was refused is a fault and not a missing part: a client that sends one is not anonymous.
  private func add(
    _ part: CallerPart, _ claim: String, of peer: CallerPeer, at place: TokenPlace,
    to builder: inout Caller.Builder
  ) -> Finding {
    switch peer.token(at: place) {
    case .refused(let fault): return .fault(.token(fault, at: place))
    case .absent: return .missing
    case .verified(let token):
      switch token.claims[claim] {
      case nil: return .missing
      case .unreadable: return .fault(.unreadable(part))
      case .text(let framed): return framed.withUnsafeBytes { add(part, value: $0, to: &builder) }
      }
    }
  }

  /// Adds what stays the same in credentials of one scheme. Those that cannot be read are a fault and no missing part.
  private func add(
    _ part: CallerPart, credentialsOf head: MessageHead, to builder: inout Caller.Builder
  ) -> Finding {
    switch head.find("authorization") {
    case .absent: return .missing
    case .repeated: return .fault(.repeated(part))
    case .once(let range):
      return head.withBytes(range) { value in
        guard !value.isEmpty else { return .missing }
        switch part == .basicUser ? BasicCredentials.user(in: value) : SigningKey.read(value) {
        case .otherScheme: return .fault(.otherScheme(part))
        case .unreadable: return .fault(.unreadable(part))
        case .found(let bytes): return bytes.withUnsafeBytes { add(part, value: $0, to: &builder) }
        }
      }
    }
  }

  func add(
    _ part: CallerPart, text: String?, under authority: String? = nil, to builder: inout Caller.Builder
  ) -> Finding {
    guard var text else { return .missing }
    return text.withUTF8 {
      add(part, value: UnsafeRawBufferPointer($0), under: authority, to: &builder)
    }
  }

  private func add(
    _ part: CallerPart, value: UnsafeRawBufferPointer, under authority: String? = nil,
    to builder: inout Caller.Builder
  ) -> Finding {
    // An empty part and a missing part are the same anonymous caller.
    guard !value.isEmpty else { return .missing }
    let (kind, name) = part.encoding(under: authority)
    builder.part(kind, name: name, value: value)
    return .added
  }
}

extension CallerPart {
  /// Whether the part is read from `Authorization`.
  public var isInAuthorization: Bool {
    self == .header("authorization") || self == .basicUser || self == .signingKey
      || tokenPlaces.contains(.authorization)
  }

  /// The kind and the name by which the part is encoded where the request lacks it: those of its first alternative.
  var encoding: (kind: Caller.Kind, name: String) { encoding(under: nil) }

  /// The kind and the name by which the part is encoded.
  ///
  /// - Parameter authority: The configured name of the authority of a certificate's part; `nil` if it has none.
  func encoding(under authority: String?) -> (kind: Caller.Kind, name: String) {
    switch self {
    case .header(let name): (.header, name)
    case .cookie(let name): (.cookie, name)
    case .query(let name): (.query, name)
    case .json(let pointer): (.json, pointer)
    case .jwt(let claim, let place): (.jwt, claim + place.text)
    case .basicUser: (.basicUser, "")
    case .signingKey: (.signingKey, "")
    case .address: (.address, "")
    case .clientCertificate(let wanted): (.clientCertificate, wanted.name(under: authority))
    case .either(let parts): parts[0].encoding(under: nil)
    case .optional(let part): part.encoding(under: nil)
    }
  }
}

extension CallerPolicy {
  /// The schemes whose credentials stay the same when a request is sent again.
  private static let knownSchemes: [StaticString] = ["bearer", "basic", "token", "apikey"]

  /// The scheme of credentials; `nil` for a single word, which is a bare token or a scheme without credentials.
  private static func scheme(of credentials: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
    credentials.firstIndex { $0 == ASCII.space || $0 == ASCII.tab }
      .map { UnsafeRawBufferPointer(rebasing: credentials[..<$0]) }
  }

  /// Whether credentials have a nonce beside a token, as Rails reads them: it may be another one in each delivery.
  private static func hasNonce(_ credentials: UnsafeRawBufferPointer) -> Bool {
    let parameter: StaticString = "nonce="
    let count = parameter.utf8CodeUnitCount
    guard credentials.count > count, credentials.contains(UInt8(ascii: "=")) else { return false }
    return (1...(credentials.count - count)).contains { start in
      switch credentials[start - 1] {
      case ASCII.space, ASCII.tab, ASCII.comma, UInt8(ascii: ";"): break
      default: return false
      }
      let name = UnsafeRawBufferPointer(rebasing: credentials[start..<start + count])
      return ASCII.equalsIgnoringCase(name, parameter)
    }
  }

  /// Whether credentials of the scheme identify the caller.
  private func isKnown(scheme: UnsafeRawBufferPointer) -> Bool {
    for name in Self.knownSchemes where ASCII.equalsIgnoringCase(scheme, name) { return true }
    return schemes.contains { name in
      name.utf8.count == scheme.count && zip(name.utf8, scheme).allSatisfy { $0 == ASCII.lowercased($1) }
    }
  }
}
