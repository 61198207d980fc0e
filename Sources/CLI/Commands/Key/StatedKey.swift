import ArgumentParser

/// The idempotency key that an operator gives, part by part.
struct StatedKey: ParsableArguments {
  // Keys may begin with a hyphen.
  @Option(
    name: .customLong("key"), parsing: .unconditionalSingleValue,
    help: ArgumentHelp(
      "The idempotency key. Once for each part of a key that has several.", valueName: "key"))
  var parts: [String] = []

  func validate() throws {
    guard !parts.contains("") else {
      throw ValidationError("--key is empty: give the one that the client sends")
    }
  }

  var isEmpty: Bool { parts.isEmpty }
}

extension StatedKey: Encodable {
  /// Encodes a text, or a list of the texts of several parts.
  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    if parts.count == 1 { try container.encode(parts[0]) } else { try container.encode(parts) }
  }
}
