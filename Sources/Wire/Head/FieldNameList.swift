/// Names of fields: each whole, or with a `*` at its end the beginning of several. Letter case does not count, and an
/// underscore is a hyphen, as CGI-like servers read it.
public struct FieldNameList: Hashable, Sendable {
  /// The names in lower case.
  public var names: [String]

  public init(_ names: [String] = []) { self.names = names }

  /// Whether the list has a name.
  public func contains(_ name: UnsafeRawBufferPointer) -> Bool {
    names.contains { Self.matches($0, name) }
  }

  /// Whether the list has a name. A name with a `*` is in it only if all names with that beginning are.
  public func contains(_ name: String) -> Bool {
    Array(name.utf8).withUnsafeBytes { contains($0) }
  }

  private static func matches(_ pattern: String, _ name: UnsafeRawBufferPointer) -> Bool {
    let pattern = pattern.utf8
    guard pattern.last == UInt8(ascii: "*") else {
      return pattern.count == name.count && pattern.elementsEqual(name, by: isSame)
    }
    let start = pattern.dropLast()
    return start.count <= name.count && start.elementsEqual(name.prefix(start.count), by: isSame)
  }

  private static func isSame(_ byte: UInt8, _ other: UInt8) -> Bool {
    byte == ASCII.lowercased(other) || byte == UInt8(ascii: "-") && other == UInt8(ascii: "_")
  }
}

/// The choice of the fields of a message that are left out, made once for many messages.
public struct FieldOmission: Sendable {
  private let dropped: FieldNameList
  private let kept: FieldNameList
  /// The names that a head recognises among those that are left out.
  public let known: FieldNameSet

  /// - Parameters:
  ///   - dropped: The names that are left out.
  ///   - kept: Those of them that stay nevertheless.
  public init(_ dropped: FieldNameList, except kept: FieldNameList = FieldNameList()) {
    self.dropped = dropped
    self.kept = kept
    known = FieldName.allCases.reduce(into: []) { set, name in
      let text = "\(name.lowercased)"
      if !text.isEmpty, dropped.contains(text), !kept.contains(text) { set.insert(FieldNameSet(name)) }
    }
  }

  /// Whether a field is left out.
  public func omits(_ name: UnsafeRawBufferPointer) -> Bool { dropped.contains(name) && !kept.contains(name) }
}

extension FieldNameList {
  /// The fields that state what is left of a client's rate. They belong to one exchange.
  public static let rateLimits = FieldNameList(["ratelimit*", "x-ratelimit*", "x-rate-limit*"])
}
