import NIOCore
import Wire

/// The invariants of every accepted request when it is taken apart and sent on.
package enum Invariants {
  /// The first rule that is broken, in words.
  package static func fault(in bytes: [UInt8]) -> String? {
    var decoder = RequestDecoder()
    var input = ByteBuffer(bytes: bytes)
    while let event = try? decoder.next(&input) {
      guard case .head(let request) = event else { continue }
      if let fault = fault(in: request.head) { return fault }
    }
    return nil
  }

  /// The same of one head, wherever it came from.
  package static func fault(in head: MessageHead) -> String? { targetFault(head) ?? forwardingFault(head) }

  /// A path in its normal form stays as it is, and both heads name the same host.
  private static func targetFault(_ head: MessageHead) -> String? {
    guard let target = try? RequestTarget(head), target.form != .authority, target.form != .asterisk else {
      return nil
    }
    let path = String(buffer: target.path)
    guard let again = try? RequestTarget(MessageHead(method: "OPTIONS", target: path)) else {
      return "a normal path is refused: \(path)"
    }
    return again.path == target.path && again.query == nil ? nil : "a normal path is changed: \(path)"
  }

  /// The lines that are sent on are read back as the same fields, less those of one hop. `Host` is not read back for a
  /// response, in which it means nothing and may be there twice.
  package static func forwardingFault(_ head: MessageHead) -> String? {
    let omitted: FieldNameSet = head.status > 0 ? [.length, FieldNameSet(.host)] : .length
    var output = ByteBuffer(string: "GET / HTTP/1.0\r\n")
    head.copyFields(into: &output, omitting: omitted)
    output.writeString("\r\n")
    var decoder = RequestDecoder(limits: HeadLimits(headBytes: 1 << 20))
    guard case .head(let copied)? = try? decoder.next(&output) else { return "what is sent on is refused" }
    let names = head.fields.filter { field in
      !FieldNameSet([.hopByHop, omitted]).contains(field.name)
        && !head.connectionNames(head.string(field.nameRange).lowercased())
    }
    let before = names.map { [head.string($0.nameRange), head.string($0.valueRange)] }
    let after = copied.head.fields.map {
      [copied.head.string($0.nameRange), copied.head.string($0.valueRange)]
    }
    return before == after ? nil : "\(before) is sent on as \(after)"
  }
}
