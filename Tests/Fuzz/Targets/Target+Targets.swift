import NIOCore
import Wire
import WireOracle

extension Target {
  /// A method and a target with a space between them: paths in their normal form, hosts, and the pairs of the query.
  static func targetsFault(in bytes: [UInt8]) -> String? {
    let words = bytes.split(separator: 0x20, maxSplits: 1, omittingEmptySubsequences: false)
    guard words.count == 2,
      let head = try? MessageHead(
        method: String(decoding: words[0], as: UTF8.self), target: String(decoding: words[1], as: UTF8.self)),
      let target = try? RequestTarget(head)
    else { return nil }
    if let fault = Invariants.fault(in: head) { return fault }
    let path = String(buffer: target.path)
    guard path.split(separator: "/").allSatisfy({ $0 != "." && $0 != ".." }) else {
      return "a normal path has dot segments: \(path)"
    }
    for isForm in [false, true] {
      let query = target.query ?? ByteBuffer()
      let size = QueryPairs(query, form: isForm).reduce(0) {
        $0 + $1.name.readableBytes + $1.value.readableBytes
      }
      guard size <= query.readableBytes else { return "the pairs are longer than their query" }
    }
    return hostFault(head, target)
  }

  /// A host is in lower case, and the same when it is read again.
  private static func hostFault(_ head: MessageHead, _ target: RequestTarget) -> String? {
    guard let host = try? RequestHost(of: head, target: target) else { return nil }
    guard let again = try? RequestHost(host.name), again.name == host.name, again.port == nil else {
      return "a host is not read again: \(String(buffer: host.name))"
    }
    return nil
  }
}
