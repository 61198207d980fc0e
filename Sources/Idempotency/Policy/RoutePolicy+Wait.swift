import Wire

extension RoutePolicy {
  /// The time for which a duplicate may wait: the route's, or less if the client prefers (RFC 7240, `wait`).
  public func maxWait(for head: MessageHead) -> Milliseconds {
    if let preferred = Self.preferredWait(head) { return min(.seconds(preferred), waitTimeout) }
    return duplicates == .wait ? waitTimeout : 0
  }

  /// The seconds of the preference; `nil` if there is none that is a number.
  private static func preferredWait(_ head: MessageHead) -> Int64? {
    for field in head.fields where field.name == .prefer {
      for preference in head.string(field.valueRange).split(separator: ",") {
        let parts = preference.split(separator: "=", maxSplits: 1).map { $0.trimmingSpaces }
        guard parts.count == 2, parts[0].lowercased() == "wait" else { continue }
        // The value may be quoted, and parameters may follow it.
        var value = parts[1].prefix { $0 != ";" }.trimmingSpaces
        if value.count > 1, value.first == "\"", value.last == "\"" { value = value.dropFirst().dropLast() }
        // Nine digits of seconds exceed every limit.
        if let seconds = Int64(value.prefix(9)), seconds >= 0 { return seconds }
      }
    }
    return nil
  }
}

extension Substring {
  /// Without the spaces and tabs around it.
  fileprivate var trimmingSpaces: Substring {
    var text = self
    while text.first == " " || text.first == "\t" { text.removeFirst() }
    while text.last == " " || text.last == "\t" { text.removeLast() }
    return text
  }
}
