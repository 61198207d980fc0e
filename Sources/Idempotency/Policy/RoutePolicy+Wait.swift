import Wire

extension RoutePolicy {
  /// The time for which a duplicate may wait: the route's, or less if the client prefers (RFC 7240, `wait`).
  public func maxWait(for head: MessageHead) -> Milliseconds {
    if let preferred = Self.preferredWait(head) { return min(.seconds(preferred), waitTimeout) }
    return duplicates == .wait ? waitTimeout : 0
  }

  /// The seconds of the preference; `nil` if there is none that is a number among the elements that are read. Beside
  /// `respond-async` it is the backend's: the time after which that is to respond with 202 (RFC 7240, section 4.3).
  private static func preferredWait(_ head: MessageHead) -> Int64? {
    var found: Int64?
    var isForBackend = false
    head.readList(of: FieldNameSet(.prefer)) { preference in
      isForBackend = isRespondAsync(preference)
      found = found ?? seconds(preference)
      return !isForBackend
    }
    return isForBackend ? nil : found
  }

  private static func isRespondAsync(_ preference: UnsafeRawBufferPointer) -> Bool {
    let name = MessageHead.trimmed(preference.prefix { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: "=") })
    return ASCII.equalsIgnoringCase(UnsafeRawBufferPointer(rebasing: name), "respond-async")
  }

  /// The seconds in `wait=N`, which may be quoted, and which parameters may follow; `nil` for another preference.
  private static func seconds(_ preference: UnsafeRawBufferPointer) -> Int64? {
    guard let equals = preference.firstIndex(of: UInt8(ascii: "=")) else { return nil }
    let name = MessageHead.trimmed(preference[..<equals])
    guard ASCII.equalsIgnoringCase(UnsafeRawBufferPointer(rebasing: name), "wait") else { return nil }
    let (quote, rest) = (UInt8(ascii: "\""), preference[(equals + 1)...])
    var value = MessageHead.trimmed(rest.prefix { $0 != UInt8(ascii: ";") })
    if value.count > 1, value.first == quote, value.last == quote { value = value.dropFirst().dropLast() }
    // Nine digits of seconds exceed every limit.
    return ASCII.decimal(UnsafeRawBufferPointer(rebasing: value.prefix(9))).map { Int64($0) }
  }
}
