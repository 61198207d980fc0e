import Wire

extension CallerPolicy {
  /// The caller of a request.
  ///
  /// A part that is missing or empty makes the caller unknown or, where anonymous callers are allowed, is encoded as
  /// missing. A part that occurs twice always makes the caller unknown.
  ///
  /// - Throws: `callerUnknown` with the first fault.
  public func caller(head: MessageHead, peer: CallerPeer) throws(Problem) -> Caller {
    var builder = Caller.Builder()
    for part in parts {
      if let fault = add(part, of: head, peer: peer, to: &builder) {
        throw .callerUnknown(fault)
      }
    }
    return builder.caller
  }

  private func add(
    _ part: CallerPart, of head: MessageHead, peer: CallerPeer, to builder: inout Caller.Builder
  ) -> CallerFault? {
    switch part {
    case .header(let name):
      switch head.find(name) {
      case .repeated: return .repeated(part)
      case .absent: return add(part, .header, name: name, value: nil, to: &builder)
      case .once(let range):
        return head.withBytes(range) { value in
          if name == "authorization", !isKnownScheme(value) { return .unknownScheme }
          return add(part, .header, name: name, value: value, to: &builder)
        }
      }
    case .cookie(let name):
      switch head.findCookie(name) {
      case .repeated: return .repeated(part)
      case .absent: return add(part, .cookie, name: name, value: nil, to: &builder)
      case .once(let range):
        return head.withBytes(range) { add(part, .cookie, name: name, value: $0, to: &builder) }
      }
    case .address:
      return add(part, .address, name: "", text: peer.address.isEmpty ? nil : peer.address, to: &builder)
    case .clientCertificate(let wanted):
      let text = peer.certificate?.value(wanted)
      let name = wanted.name(under: text == nil ? nil : peer.certificate?.authority)
      return add(part, .clientCertificate, name: name, text: text, to: &builder)
    }
  }

  private func add(
    _ part: CallerPart, _ kind: Caller.Kind, name: String, text: String?, to builder: inout Caller.Builder
  ) -> CallerFault? {
    guard var text else { return add(part, kind, name: name, value: nil, to: &builder) }
    return text.withUTF8 { add(part, kind, name: name, value: UnsafeRawBufferPointer($0), to: &builder) }
  }

  private func add(
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

  /// Whether credentials have a scheme that identifies the caller. A single word is a bare token and does.
  private func isKnownScheme(_ credentials: UnsafeRawBufferPointer) -> Bool {
    guard let end = credentials.firstIndex(where: { $0 == ASCII.space || $0 == ASCII.tab }) else {
      return true
    }
    let scheme = UnsafeRawBufferPointer(rebasing: credentials[..<end])
    for name in Self.knownSchemes where ASCII.equalsIgnoringCase(scheme, name) { return true }
    return schemes.contains { name in
      name.utf8.count == scheme.count && zip(name.utf8, scheme).allSatisfy { $0 == ASCII.lowercased($1) }
    }
  }
}
