import Glibc
import Idempotency
import Logging
import NIOCore
import NIOPosix
import Platform
import Transport
import Wire

/// Sends requests to a backend on loopback for a while and prints the processor time of one.
///
///     TransportBenchmark PORT [SECONDS] [CONNECTIONS] [GET|POST] [CA]
///
/// With the file of an authority the backend is spoken to by TLS, as `localhost`.
@main
enum TransportBenchmark {
  private static let fields = """
    Host: api.example.com\r
    User-Agent: curl/8.5.0\r
    Accept: application/json\r
    Content-Type: application/json\r
    Authorization: Bearer 0123456789abcdef0123456789abcdef\r
    Idempotency-Request-Id: 5f0c9a3e8b7d4c6fa1b2c3d4e5f60718\r
    Idempotency-Attempt: 1\r
    X-Forwarded-For: 127.0.0.1\r
    X-Forwarded-Proto: http\r
    Via: 1.1 semel\r\n
    """

  static func main() async throws {
    let arguments = CommandLine.arguments
    guard arguments.count > 1, let port = Int(arguments[1]) else { return print("TransportBenchmark PORT …") }
    let seconds = arguments.count > 2 ? Int64(arguments[2]) ?? 4 : 4
    let connections = arguments.count > 3 ? Int(arguments[3]) ?? 32 : 32
    let method = arguments.count > 4 ? arguments[4] : "POST"

    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let context = EventLoopContext(loop: group.next())
    var settings = UpstreamSettings(name: "backend", address: .tcp(host: "127.0.0.1", port: port))
    if arguments.count > 5 {
      settings.tls = ClientTLSFiles(ca: arguments[5], serverName: "localhost")
    }
    let upstream = HTTPUpstream(context: context, loops: 1, logger: Logger(label: "benchmark"))
    try await measure(upstream, context, method, settings, seconds, connections)
  }

  private static func measure(
    _ upstream: some Upstream, _ context: EventLoopContext, _ method: String, _ settings: UpstreamSettings,
    _ seconds: Int64,
    _ connections: Int
  ) async throws {
    let end = NIODeadline.now() + .seconds(seconds)
    let began = usage()
    let count = try await Task(executorPreference: context.executor) {
      try await withThrowingTaskGroup(of: Int.self) { group in
        for _ in 0..<connections {
          group.addTask(executorPreference: context.executor) {
            try await send(method, to: settings, through: upstream, until: end)
          }
        }
        return try await group.reduce(0, +)
      }
    }.value
    let spent = usage()
    print("\(count) requests, \(count / Int(seconds)) a second")
    let user = (spent.user - began.user) / Double(count)
    let system = (spent.system - began.system) / Double(count)
    print("processor time a request: \(user) µs user, \(system) µs system")
  }

  private static func send(
    _ method: String, to settings: UpstreamSettings, through upstream: some Upstream, until end: NIODeadline
  ) async throws -> Int {
    let body = ByteBuffer(string: #"{"amount":1999,"currency":"usd","items":[1,2,3]}"#)
    let fields = ByteBuffer(string: fields)
    var count = 0
    while NIODeadline.now() < end {
      let exchange = upstream.begin(
        UpstreamRequest(
          upstream: settings, method: method, target: "/v1/orders", fields: fields,
          body: method == "GET" ? .none : .whole(body),
          permit: SendPermit(requestedAt: .now, lease: .seconds(30))))
      defer { exchange.close() }
      _ = try await exchange.collect(upTo: 1 << 20, within: .seconds(30))
      count += 1
    }
    return count
  }

  /// The process's processor time in microseconds.
  private static func usage() -> (user: Double, system: Double) {
    var usage = rusage()
    // RUSAGE_SELF
    getrusage(0, &usage)
    func microseconds(_ time: timeval) -> Double { Double(time.tv_sec) * 1e6 + Double(time.tv_usec) }
    return (microseconds(usage.ru_utime), microseconds(usage.ru_stime))
  }
}
