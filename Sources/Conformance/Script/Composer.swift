/// Makes the bytes of deliveries. Pure: fresh keys come in as arguments.
public struct Composer: Sendable {
  /// The form of a key that an endpoint takes.
  public enum KeyStyle: String, Sendable {
    /// As an RFC 8941 string, which the draft demands.
    case quoted
    case bare

    func value(_ key: String) -> String { self == .quoted ? "\"\(key)\"" : key }
  }

  public let setup: Setup
  public var style: KeyStyle

  public init(_ setup: Setup, style: KeyStyle) {
    self.setup = setup
    self.style = style
  }

  /// - Parameter keys: The fresh keys of the script by their names.
  public func request(_ delivery: Delivery, keys: [String: String]) -> RawRequest {
    let body = body(delivery.payload)
    var lines = ["Host: \(setup.endpoint.authority)"] + callerLines(delivery.caller)
    lines += keyValues(delivery.key, keys).map { "\(setup.keyHeader): \($0)" }
    let names = Set((setup.headers.map(\.name) + delivery.fieldNames).map { $0.lowercased() })
    lines.append("Content-Type: \(mediaType(of: delivery.payload))\(delivery.mediaTypeParameters)")
    if delivery.payload == .rewritten(.compressed) { lines.append("Content-Encoding: gzip") }
    if !names.contains("accept") { lines.append("Accept: */*") }
    if !names.contains("user-agent") { lines.append("User-Agent: semel-conformance") }
    lines += delivery.fields
    lines += framing(delivery.framing, body.count)
    return RawRequest(
      method: delivery.method ?? setup.method, target: target(delivery.target), lines: lines,
      body: delivery.framing == .chunked ? Composer.chunked(body) : body)
  }

  /// A request without a key and without a body, such as that of an oracle.
  public func get(_ endpoint: Endpoint) -> RawRequest {
    let isSame = endpoint.hasSameOrigin(as: setup.endpoint)
    let headers = isSame ? setup.headers.filter { $0.name.lowercased() != "content-type" } : []
    return RawRequest(
      method: "GET", target: endpoint.target,
      lines: ["Host: \(endpoint.authority)", "Accept: */*", "Connection: close"] + headers.map(\.line))
  }

  private func mediaType(of payload: Delivery.Payload) -> String {
    let mediaType = setup.payloads.mediaType
    guard payload == .rewritten(.rebounded), let boundary = setup.payloads.boundary else { return mediaType }
    return mediaType.replacing(boundary, with: Composer.other(boundary))
  }

  private static func other(_ boundary: String) -> String { boundary + "2" }

  private func callerLines(_ caller: Delivery.Caller) -> [String] {
    let headers = setup.headers.filter { $0.name.lowercased() != "content-type" }
    switch caller {
    case .first:
      return headers.map(\.line)
    case .none:
      return headers.filter { !Setup.isCredential($0.name) }.map(\.line)
    case .other:
      guard let other = setup.otherCaller else { return headers.map(\.line) }
      return headers.filter { $0.name.lowercased() != other.name.lowercased() }.map(\.line) + [other.line]
    }
  }

  private func keyValues(_ key: Delivery.Key, _ keys: [String: String]) -> [String] {
    switch key {
    case .none: return []
    case .fresh(let name): return [style.value(keys[name] ?? name)]
    case .text(let template): return [style.value(Composer.filled(template, keys))]
    case .values(let templates): return templates.map { Composer.filled($0, keys) }
    }
  }

  private static func filled(_ template: String, _ keys: [String: String]) -> String {
    var text = template
    for (name, key) in keys {
      text.replace("{\(name)}", with: key)
      text.replace("{\(name):integer}", with: integer(of: key))
      text.replace("{\(name):sibling}", with: sibling(of: key))
    }
    return text
  }

  private static func sibling(of key: String) -> String {
    String(key.dropLast()) + (key.hasSuffix("0") ? "1" : "0")
  }

  /// A number of fifteen digits at most, which an RFC 8941 integer may have, made of a key (FNV-1a).
  private static func integer(of key: String) -> String {
    let hash = key.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    return String(hash % 1_000_000_000_000_000)
  }

  private func target(_ target: Delivery.Target) -> String {
    let own = setup.endpoint.target
    switch target {
    case .same: return own
    case .trailingSlash:
      let path = setup.endpoint.path
      return path + (path.hasSuffix("/") ? "" : "/") + own.dropFirst(path.count)
    case .query(let query): return own + (own.contains("?") ? "&" : "?") + query
    }
  }

  private func framing(_ framing: Delivery.Framing, _ length: Int) -> [String] {
    switch framing {
    case .length: ["Content-Length: \(length)"]
    case .chunked: ["Transfer-Encoding: chunked"]
    case .expectation: ["Content-Length: \(length)", "Expect: 100-continue"]
    }
  }

  private static func chunked(_ body: [UInt8]) -> [UInt8] {
    let middle = body.count / 2
    return [body[..<middle], body[middle...]].reduce(into: []) { bytes, piece in
      guard !piece.isEmpty else { return }
      bytes += Array((String(piece.count, radix: 16) + "\r\n").utf8) + piece + [13, 10]
    } + Array("0\r\n\r\n".utf8)
  }

  private func body(_ payload: Delivery.Payload) -> [UInt8] {
    let payloads = setup.payloads
    switch payload {
    case .first: return payloads.first
    case .other: return payloads.other ?? payloads.first
    case .slow: return payloads.slow ?? payloads.first
    case .otherThanSlow: return payloads.otherThanSlow ?? payloads.other ?? payloads.first
    case .failing: return payloads.failing ?? payloads.first
    case .malformed: return Array("{\"broken\":".utf8)
    case .empty: return []
    case .rewritten(let rewriting): return rewritten(rewriting)
    }
  }

  private func rewritten(_ rewriting: Delivery.Rewriting) -> [UInt8] {
    let first = setup.payloads.first
    if rewriting == .compressed { return Gzip.stored(first) }
    if rewriting == .rebounded, let boundary = setup.payloads.boundary {
      return first.replacing(Array(boundary.utf8), with: Array(Composer.other(boundary).utf8))
    }
    guard let json = JSONValue(first) else { return first }
    switch rewriting {
    case .rebounded, .compressed: return first
    case .spaced: return Array((json.text(space: " ") + "\n").utf8)
    case .reordered: return Array(json.text(.reversed).utf8)
    case .renumbered: return Array(json.renumbered.text().utf8)
    }
  }
}

extension JSONValue {
  fileprivate var renumbered: JSONValue {
    switch self {
    case .number(let text): Int(text) == nil ? self : .number(text + ".0")
    case .array(let elements): .array(elements.map(\.renumbered))
    case .object(let members): .object(members.map { Member($0.name, $0.value.renumbered) })
    case .null, .bool, .string: self
    }
  }
}

/// Bytes as a gzip file (RFC 1952) of stored blocks: a content coding without a compressor.
enum Gzip {
  /// The maximum size of a stored block (RFC 1951, section 3.2.4).
  private static let maxBlock = 65535

  static func stored(_ bytes: [UInt8]) -> [UInt8] {
    var result: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255]
    var rest = bytes[...]
    repeat {
      let block = rest.prefix(maxBlock)
      rest = rest.dropFirst(maxBlock)
      let length = UInt16(block.count)
      result += [rest.isEmpty ? 1 : 0] + littleEndian(length) + littleEndian(~length) + block
    } while !rest.isEmpty
    return result + littleEndian(checksum(bytes)) + littleEndian(UInt32(truncatingIfNeeded: bytes.count))
  }

  private static func littleEndian(_ number: some FixedWidthInteger) -> [UInt8] {
    withUnsafeBytes(of: number.littleEndian) { Array($0) }
  }

  /// CRC-32, bit by bit: a body is summed once.
  static func checksum(_ bytes: some Sequence<UInt8>) -> UInt32 {
    ~bytes.reduce(UInt32.max) { sum, byte in
      (0..<8).reduce(sum ^ UInt32(byte)) { value, _ in value & 1 == 1 ? value >> 1 ^ 0xEDB8_8320 : value >> 1
      }
    }
  }
}
