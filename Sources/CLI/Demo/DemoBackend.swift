import Foundation
import Glibc
import Hummingbird
import Logging
import NIOCore
import Platform
import ServiceLifecycle
import Synchronization
import Wire

/// The demo's backend. It takes a second for each order, and counts the orders.
struct DemoBackend: Service {
  let host: String
  let port: Int
  var onListening: @Sendable () -> Void = {}
  private let orders = Orders()

  init(host: String, port: Int) {
    self.host = host
    self.port = DemoPort.ofBackend(port)
  }

  func run() async throws {
    let router = Router()
    router.post("/v1/orders") { [orders] request, _ in
      let body = try await request.body.collect(upTo: 1 << 20)
      try await Task.sleep(for: .seconds(1))
      return Self.json(orders.add(String(buffer: body)), status: .created)
    }
    router.get("/v1/orders") { [orders] _, _ in Self.json(orders.list(), status: .ok) }
    var logger = Logger(label: "demo-backend")
    // An error that ends it is thrown, and the library's own entries say no more.
    logger.logLevel = .critical
    let application = Application(
      router: router, configuration: .init(address: .hostname(host, port: port)),
      onServerRunning: { [onListening] _ in onListening() }, logger: logger)
    do {
      try await application.runService(gracefulShutdownSignals: [])
    } catch let error as IOError {
      let address = ServerAddress.tcp(host: host, port: port)
      let failure = ListenError(address: address.description, error)
      let option = failure.number == EADDRNOTAVAIL ? "--backend-host" : "--backend-port"
      let fault: (any Error)? = ListenFault(failure, at: [ListenPlace(name: option, address: address)])
      throw fault ?? failure
    } catch let error as SocketAddressError.UnknownHost {
      throw ListenFault(error, member: "--backend-host")
    }
  }

  private static func json(_ text: String, status: HTTPResponse.Status) -> Response {
    Response(
      status: status, headers: [.contentType: "application/json"],
      body: .init(byteBuffer: ByteBuffer(string: text + "\n")))
  }
}

/// The orders that the demo's backend has accepted, each as JSON, in memory.
private final class Orders: Sendable {
  private let bodies = Mutex<[String]>([])

  func add(_ body: String) -> String {
    let json = Self.json(body)
    return bodies.withLock { bodies in
      bodies.append(json)
      return #"{"id":"ord_\#(bodies.count)","status":"created"}"#
    }
  }

  /// A body as an element of the list: as it is if it is JSON, else as a string.
  private static func json(_ body: String) -> String {
    let bytes = Data(body.utf8)
    if (try? JSONSerialization.jsonObject(with: bytes, options: .fragmentsAllowed)) != nil { return body }
    return (try? JSONEncoder().encode(body)).map { String(decoding: $0, as: UTF8.self) } ?? "null"
  }

  func list() -> String {
    bodies.withLock { #"{"executed":\#($0.count),"orders":[\#($0.joined(separator: ","))]}"# }
  }
}
