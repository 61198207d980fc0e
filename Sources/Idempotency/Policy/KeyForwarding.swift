import NIOCore
import Wire

/// The form in which a backend gets the fields that hold keys.
public enum KeyForwarding: Hashable, Sendable {
  /// As the client sent them.
  case keep
  /// Not at all, for backends that repeat a request because it has such a field.
  case drop
  /// Under another name, in lower case.
  case rename(String)
}

extension RoutePolicy {
  /// The fields that are by themselves a source of keys, in lower case.
  public var keyFields: [String] {
    key.from.compactMap { source in
      if case .header(let name) = source { name } else { nil }
    }
  }

  /// The fields that do not go to the backend as the client sent them; `nil` if all do.
  var withheldFields: FieldOmission? {
    switch forwardKey {
    case .keep: nil
    case .drop: FieldOmission(FieldNameList(keyFields))
    // A client's own field of the new name would pass for the key.
    case .rename(let name): FieldOmission(FieldNameList(keyFields + [name]))
    }
  }

  /// Writes the field that takes the place of the key's, if the route renames it.
  public func writeRenamedKey(of head: MessageHead, into out: inout ByteBuffer) {
    guard case .rename(let name) = forwardKey else { return }
    for field in keyFields.lazy.flatMap(head.fields(named:)) where !field.valueRange.isEmpty {
      out.writeString(name)
      out.writeLiteral(": ")
      out.writeImmutableBuffer(head.slice(field.valueRange))
      return out.writeLiteral("\r\n")
    }
  }
}
