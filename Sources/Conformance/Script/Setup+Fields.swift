/// The fields that the options may set.
extension Setup {
  /// The fields that end or route a request, or change its connection. The check makes them itself: a second one, or
  /// another one, would falsify what its cases examine.
  private static let ownFields: Set = [
    "connection", "content-length", "expect", "host", "transfer-encoding", "upgrade",
  ]

  /// The reason for which the fields of the options cannot be sent, without their values; `nil` if they can.
  public var fieldFault: String? {
    if Self.isOwn(keyHeader) { return "--key-header: \(keyHeader) is a field of every request" }
    if let line = headers.first(where: isTaken) {
      return "--header: the check makes the field \(line.name) itself"
    }
    if let line = otherCaller, isTaken(line) || Self.isOwn(line.name) {
      return "--other-caller: the check makes the field \(line.name) itself"
    }
    return nil
  }

  private func isTaken(_ line: HeaderLine) -> Bool {
    let name = Self.normalized(line.name)
    return name == Self.normalized(keyHeader) || Self.ownFields.contains(name)
  }

  private static func isOwn(_ name: String) -> Bool {
    ownFields.contains(normalized(name)) || normalized(name) == "content-type"
  }

  /// A name by which many servers know the field, underscores included.
  static func normalized(_ name: String) -> String {
    name.lowercased().replacing("_", with: "-")
  }
}
