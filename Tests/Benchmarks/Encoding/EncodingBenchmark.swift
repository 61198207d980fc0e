import Idempotency
import NIOCore
import Store

/// Prints the time that it takes to encode a recorded response for the store, and to decode it again, by the size of
/// its body: compressed, sealed, and both.
///
///     EncodingBenchmark [ROUNDS]
@main
enum EncodingBenchmark {
  private static let secrets: [Secret] = ["the secret of the benchmark"]
  private static let forms = [
    ("compressed", OutcomeCodec(compression: .unsealed)), ("sealed", OutcomeCodec(secrets: secrets)),
    ("both", OutcomeCodec(secrets: secrets, compression: .all)),
  ]

  static func main() throws {
    let rounds = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 20
    guard let id = Digest256(repeatElement(7, count: 32)).map(RecordID.init) else { return }
    let key = try KeyPolicy().key(texts: ["4f5b9a4e-8a51-4f0e-9f54-0f6d2c6b1a37"])
    print("microseconds, the median of \(rounds) rounds: form, body, encode, decode, bytes stored")
    for (name, codec) in forms {
      for size in [256, 1 << 10, 4 << 10, 16 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20] {
        let response = Outcome.whole(Sample.response(bodyBytes: size))
        let count = max(1, (1 << 20) / (size + 1024))
        guard case .encoded(let stored) = try codec.encoded(response, of: id, key) else { continue }
        let encode = try median(of: rounds) {
          for _ in 0..<count { _ = try codec.encoded(response, of: id, key) }
        }
        let decode = try median(of: rounds) {
          for _ in 0..<count { _ = try codec.decoded(stored, of: id, key) }
        }
        let bytes = (stored.response?.readableBytes ?? 0) + (stored.location?.utf8.count ?? 0)
        print(
          "\(name)\t\(size)\t\(text(encode / Double(count)))\t\(text(decode / Double(count)))\t\(bytes)")
      }
    }
  }

  private static func median(of rounds: Int, _ body: () throws -> Void) rethrows -> Double {
    let spans = try (0..<rounds).map { _ in try ContinuousClock().measure(body) }.sorted()
    let median = spans[rounds / 2].components
    return Double(median.seconds) * 1e6 + Double(median.attoseconds) / 1e12
  }

  private static func text(_ number: Double) -> String {
    let tenths = Int((number * 10).rounded())
    return "\(tenths / 10).\(tenths % 10)"
  }
}

/// Responses as an API of orders gives them.
enum Sample {
  static func response(bodyBytes: Int) -> RecordedResponse {
    var body = #"{"object":"list","data":["#
    var number = 0
    while body.utf8.count < bodyBytes {
      number += 1
      body += order(number)
    }
    return RecordedResponse(
      status: 201,
      fields: ByteBuffer(
        string: "Content-Type: application/json\r\nLocation: /v1/orders/ord_19af3\r\nX-Request: 8d2f\r\n"),
      body: ByteBuffer(string: String(body.utf8.prefix(bodyBytes)) ?? body))
  }

  /// One order, whose names are those of all others and whose values are its own.
  private static func order(_ number: Int) -> String {
    let mixed = UInt64(truncatingIfNeeded: number) &* 0x9E37_79B9_7F4A_7C15
    return """
      {"id":"ord_\(String(mixed, radix: 16))","object":"order","amount":\(mixed % 100_000),"currency":"eur",\
      "customer":{"id":"cus_\(String(mixed &* 31, radix: 36))","email":"customer\(mixed % 9973)@example.com"},\
      "created":\(1_700_000_000 + number * 37),"status":"\(number % 3 == 0 ? "paid" : "open")"},
      """
  }
}
