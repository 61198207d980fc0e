import NIOCore
import Wire

/// A client's stream of any bytes, judged by the codec and by the oracle.
package enum WireFuzz {
  package enum Verdict: Equatable {
    /// Both read the same messages to the end of the bytes.
    case agreed
    /// The codec refuses what the oracle accepts, or refuses it sooner.
    case stricter(WireError)
    /// Both refuse.
    case refused(WireError)
    /// A defect: the codec accepted what the oracle does not, or something else by it.
    case broken(String)
  }

  /// Everything that must hold for any bytes whatever.
  package static func check(_ bytes: [UInt8]) -> Verdict {
    let whole = Decoded.requests(bytes)
    let trickled = Decoded.requests(bytes, cuts: Array(0..<bytes.count))
    guard whole == trickled else { return .broken("cutting changes the meaning: \(whole) / \(trickled)") }
    if let fault = Invariants.fault(in: bytes) { return .broken(fault) }
    let oracle = Oracle.requests(bytes)
    let ours = comparable(bytes)
    for (index, message) in ours.enumerated() {
      guard index < oracle.messages.count else { return .broken("the oracle refuses \(message)") }
      if let fault = difference(message, oracle.messages[index], isLast: index == ours.count - 1) {
        return .broken(fault)
      }
    }
    guard let error = whole.error else { return .agreed }
    return oracle.refuses ? .refused(error) : .stricter(error)
  }

  private static func difference(_ ours: Oracle.Message, _ oracle: Oracle.Message, isLast: Bool) -> String? {
    let sameHead =
      ours.method == oracle.method && ours.target == oracle.target && ours.fields == oracle.fields
    guard sameHead else { return "another head: \(ours) / \(oracle)" }
    if ours.isComplete, !oracle.isComplete { return "the oracle sees no end: \(ours) / \(oracle)" }
    let sameBody = ours.isComplete ? ours.body == oracle.body : oracle.body.starts(with: ours.body)
    return sameBody ? nil : "another body: \(ours) / \(oracle)"
  }

  /// The messages that the oracle has an opinion on: up to the first that it stops at by its nature, which is
  /// one of a method it does not know, or with a target beyond ASCII, one that leaves HTTP, or one that ends the connection.
  private static func comparable(_ bytes: [UInt8]) -> [Oracle.Message] {
    var decoder = RequestDecoder()
    var input = ByteBuffer(bytes: bytes)
    var messages: [Oracle.Message] = []
    var isLast = false
    while let event = try? decoder.next(&input) {
      switch event {
      case .head(let request):
        let head = request.head
        guard case .request(let method, let range, let target) = head.start, !isLast else { return messages }
        if method == .other || method == .connect || head.first(.upgrade) != nil { return messages }
        // The oracle takes ASCII alone in a target.
        if head.string(target).utf8.contains(where: { $0 >= 0x80 }) { return messages }
        isLast = !request.keepAlive
        messages.append(
          Oracle.Message(
            method: head.string(range), target: head.string(target),
            fields: head.fields.map { "\(head.string($0.nameRange)): \(head.string($0.valueRange))" }))
      case .body(let piece):
        messages[messages.count - 1].body += Array(piece.readableBytesView)
      case .end:
        messages[messages.count - 1].isComplete = true
      }
    }
    return messages
  }
}
