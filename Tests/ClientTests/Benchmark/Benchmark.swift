import Foundation
import GRDB
import HTTPTypes
import SemelClient
import SemelOutbox

/// `client-benchmark [COUNT]`: the costs of the libraries for clients on this machine and disk. Build it with
/// `-c release`. COUNT (100,000) is the size of the large queue.
@main
struct Benchmark {
  static func main() async throws {
    let count = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 100_000
    try await calls()
    for isDurable in [true, false] { try await enqueuing(2000, isDurable: isDurable) }
    try await drain(count)
  }

  /// An order of 200 bytes.
  private static let request = IntentRequest(
    method: .post, path: "/v1/orders", fields: [.contentType: "application/json"],
    body: .bytes(Array(#"{"item":""#.utf8) + Array(repeating: 0x61, count: 189) + Array("\"}".utf8)))

  /// The cost of a call over that of its transport.
  private static func calls() async throws {
    let (count, transport) = (200_000, InstantTransport())
    guard let origin = Origin("http://127.0.0.1") else { return }
    let bare = HTTPRequest(method: .post, scheme: "http", authority: "127.0.0.1", path: "/v1/orders")
    let bareTime = try await ContinuousClock().measure {
      for _ in 0..<count {
        _ = try await transport.send(bare, body: [1], timeout: .seconds(1), maxResponseBody: 1000)
      }
    }
    let client = IntentClient(origin: origin, transport: transport)
    let time = try await ContinuousClock().measure {
      for _ in 0..<count { _ = try await client.send(Intent(request)) }
    }
    let cost = (time - bareTime) / count
    print("a call through IntentClient over its transport: \(microseconds(cost)) µs")
  }

  /// Durable enqueues, beside GRDB's bare inserts of the same bytes.
  private static func enqueuing(_ count: Int, isDurable: Bool) async throws {
    try await withDatabase(isDurable: isDurable) { database, outbox in
      try await database.write { db in
        try db.execute(sql: "CREATE TABLE bare (key TEXT PRIMARY KEY, body BLOB)")
      }
      guard case .bytes(let bytes) = request.body else { return }
      let body = Data(bytes)
      let bare = try await latencies(count) { number in
        try await database.write { db in
          try db.execute(sql: "INSERT INTO bare VALUES (?, ?)", arguments: ["key-\(number)", body])
        }
      }
      let enqueued = try await latencies(count) { number in
        try await database.write { db in _ = try outbox.enqueue(request, group: "g\(number % 100)", in: db) }
      }
      let synchronous = isDurable ? "FULL" : "NORMAL"
      print("GRDB's bare insert, synchronous = \(synchronous): \(summary(bare))")
      print("enqueue, synchronous = \(synchronous): \(summary(enqueued))")
    }
  }

  /// Memory and time of a large queue.
  private static func drain(_ count: Int) async throws {
    try await withDatabase(isDurable: false) { database, outbox in
      let before = residentKilobytes()
      for start in stride(from: 0, to: count, by: 1000) {
        try await database.write { db in
          for number in start..<min(start + 1000, count) {
            _ = try outbox.enqueue(request, group: "g\(number % 1000)", in: db)
          }
        }
      }
      print(
        "memory with \(count) queued intents: \(residentKilobytes() / 1024) MiB, before them \(before / 1024) MiB"
      )
      let clock = ContinuousClock()
      let start = clock.now
      let running = Task { try await outbox.run() }
      while try await outbox.statistics().ended < count { try await Task.sleep(for: .milliseconds(500)) }
      let time = clock.now - start
      running.cancel()
      let seconds = Double(time.components.seconds) + Double(time.components.attoseconds) * 1e-18
      print("drained in \(Int(seconds)) s: \(Int(Double(count) / seconds)) intents a second")
    }
  }

  private static func withDatabase(
    isDurable: Bool, _ body: (DatabasePool, Outbox) async throws -> Void
  ) async throws {
    let folder = FileManager.default.temporaryDirectory.appending(
      path: "semel-benchmark-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    var configuration = Configuration()
    configuration.prepareDatabase { db in
      try db.execute(sql: "PRAGMA synchronous = \(isDurable ? "FULL" : "NORMAL")")
    }
    let database = try DatabasePool(
      path: folder.appending(path: "app.sqlite").path(), configuration: configuration)
    guard let origin = Origin("http://127.0.0.1") else { return }
    var settings = Outbox.Settings()
    settings.maxParallel = 16
    let outbox = try await Outbox(
      database: database, origin: origin, transport: InstantTransport(), settings: settings)
    try await body(database, outbox)
  }

  private static func latencies(_ count: Int, _ body: (Int) async throws -> Void) async throws -> [Duration] {
    var times: [Duration] = []
    for number in 0..<count {
      times.append(try await ContinuousClock().measure { try await body(number) })
    }
    return times
  }

  private static func summary(_ times: [Duration]) -> String {
    let sorted = times.sorted()
    let mean = times.reduce(.zero, +) / times.count
    let perSecond = 1_000_000 / max(1, microseconds(mean))
    return "\(Int(perSecond)) a second, median \(microseconds(sorted[times.count / 2])) µs, "
      + "99th percentile \(microseconds(sorted[times.count * 99 / 100])) µs"
  }

  private static func microseconds(_ time: Duration) -> Double {
    let value = Double(time.components.seconds) * 1e6 + Double(time.components.attoseconds) * 1e-12
    return (value * 100).rounded() / 100
  }

  /// The memory of this process that is in use, by Linux' count.
  private static func residentKilobytes() -> Int {
    let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
    return line?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
  }
}

/// A transport whose server responds at once.
private struct InstantTransport: Transport {
  func send(
    _ request: HTTPRequest, body: [UInt8], timeout: Duration, maxResponseBody: Int
  ) async throws(TransportError) -> Response {
    Response(status: .created, fields: [.executedMark: "executed"], body: [0x7B, 0x7D])
  }
}

extension HTTPField.Name {
  fileprivate static let executedMark: Self = {
    guard let name = Self("Idempotency-Status") else { fatalError("The name is valid.") }
    return name
  }()
}
