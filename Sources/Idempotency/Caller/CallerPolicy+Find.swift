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
      guard body != nil || !part.isInBody else {
        needsBody = true
        continue
      }
      if let fault = add(part, of: head, peer: peer, query: query, body: body, to: &builder) {
        throw .callerUnknown(fault)
      }
    }
    return needsBody ? nil : builder.caller
  }

  private func add(
    _ part: CallerPart, of head: MessageHead, peer: CallerPeer, query: ByteBuffer?, body: ByteBuffer?,
    to builder: inout Caller.Builder
  ) -> CallerFault? {
    switch part {
    case .header(let name):
      return add(part, .header, name: name, head.find(name), of: head, to: &builder)
    case .cookie(let name):
      return add(part, .cookie, name: name, head.findCookie(name), of: head, to: &builder)
    case .query(let name):
      return add(part, .query, name: name, reading: KeySource.readQuery(name, in: query), to: &builder)
    case .json(let pointer):
      let reading = Self.readJSON(pointer, in: body, of: head)
      return add(part, .json, name: pointer, reading: reading, to: &builder)
    case .jwt(let claim):
      return add(part, claim, of: peer.token, to: &builder)
    case .address:
      return add(part, .address, name: "", text: peer.address, to: &builder)
    case .clientCertificate(let wanted):
      let text = peer.certificate?.value(wanted)
      let name = wanted.name(under: text == nil ? nil : peer.certificate?.authority)
      return add(part, .clientCertificate, name: name, text: text, to: &builder)
    }
  }

  // The following also judge the values that an operator gives, so that they have one rule.

  func add(
    _ part: CallerPart, _ kind: Caller.Kind, name: String, _ finding: FieldFinding, of head: MessageHead,
    to builder: inout Caller.Builder
  ) -> CallerFault? {
    switch finding {
    case .repeated: return .repeated(part)
    case .absent: return add(part, kind, name: name, value: nil, to: &builder)
    case .once(let range):
      return head.withBytes(range) { value in
        guard kind == .header, name == "authorization" else {
          return add(part, kind, name: name, value: value, to: &builder)
        }
        guard let scheme = Self.scheme(of: value) else {
          let isMissing = isKnown(scheme: value)
          return add(part, kind, name: name, value: isMissing ? nil : value, to: &builder)
        }
        guard isKnown(scheme: scheme), !(ASCII.equalsIgnoringCase(scheme, "token") && Self.hasNonce(value))
        else { return .unknownScheme }
        return add(part, kind, name: name, value: value, to: &builder)
      }
    }
  }

  /// A body that cannot be read is a fault and not a missing part: a backend may read what Semel cannot.
  private static func readJSON(
    _ pointer: String, in body: ByteBuffer?, of head: MessageHead
  ) -> KeyReading {
    guard let body, body.readableBytes > 0 else { return .none }
    guard !head.hasContentCoding else { return .fault(.wrongType) }
    return body.withUnsafeReadableBytes { KeySource.readJSON(pointer, in: $0) ?? .fault(.wrongType) }
  }

  func add(
    _ part: CallerPart, _ kind: Caller.Kind, name: String, reading: KeyReading,
    to builder: inout Caller.Builder
  ) -> CallerFault? {
    switch reading {
    case .none: return add(part, kind, name: name, value: nil, to: &builder)
    case .key(let bytes):
      return bytes.withUnsafeBytes { add(part, kind, name: name, value: $0, to: &builder) }
    case .fault(.repeated): return .repeated(part)
    case .fault: return .unreadable(part)
    }
  }

  /// A token that was refused is a fault and not a missing part: a client that sends one is not anonymous.
  private func add(
    _ part: CallerPart, _ claim: String, of token: TokenReading, to builder: inout Caller.Builder
  ) -> CallerFault? {
    switch token {
    case .refused(let fault): return .token(fault)
    case .absent: return add(part, .jwt, name: claim, value: nil, to: &builder)
    case .verified(let token):
      switch token.claims[claim] {
      case nil: return add(part, .jwt, name: claim, value: nil, to: &builder)
      case .unreadable: return .unreadable(part)
      case .text(let framed):
        return framed.withUnsafeBytes { add(part, .jwt, name: claim, value: $0, to: &builder) }
      }
    }
  }

  func add(
    _ part: CallerPart, _ kind: Caller.Kind, name: String, text: String?, to builder: inout Caller.Builder
  ) -> CallerFault? {
    guard var text else { return add(part, kind, name: name, value: nil, to: &builder) }
    return text.withUTF8 { add(part, kind, name: name, value: UnsafeRawBufferPointer($0), to: &builder) }
  }

  func add(
    _ part: CallerPart, _ kind: Caller.Kind, name: String, value: UnsafeRawBufferPointer?,
    to builder: inout Caller.Builder
  ) -> CallerFault? {
    let isMissing = value?.isEmpty ?? true
    if anonymous == .refuse, isMissing { return .missing(part) }
    // An empty part and a missing part are the same anonymous caller.
    builder.part(kind, name: name, value: isMissing ? nil : value)
    return nil
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
