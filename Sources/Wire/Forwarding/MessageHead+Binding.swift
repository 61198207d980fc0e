extension MessageHead {
  /// Whether the message uses a scheme that authenticates connections instead of requests (`Negotiate`, RFC 4559, and
  /// `NTLM`), so that its connection may belong to one user from now on.
  public var bindsConnection: Bool {
    guard !names.isDisjoint(with: .authentication) else { return false }
    return fields.contains { field in
      (field.name == .authorization || field.name == .wwwAuthenticate)
        && withBytes(field.valueRange) { Self.namesBindingScheme($0) }
    }
  }

  /// Whether `Negotiate` or `NTLM` stands in the place of a scheme, in a list of challenges or alone, or may stand in one
  /// that is too long to be read.
  private static func namesBindingScheme(_ value: UnsafeRawBufferPointer) -> Bool {
    var elements = ListElements(value)
    while let element = elements.next() {
      let end = element.firstIndex { $0 == ASCII.space || $0 == ASCII.tab } ?? element.count
      let scheme = UnsafeRawBufferPointer(rebasing: element[..<end])
      if ASCII.equalsIgnoringCase(scheme, "negotiate") || ASCII.equalsIgnoringCase(scheme, "ntlm") {
        return true
      }
    }
    return elements.isCut
  }
}
