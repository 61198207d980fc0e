import Foundation
import HTTPTypes
import SemelClient
import SemelURLSession
import Testing

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// A listener on a free port, whose every connection gets the same bytes and is closed. Without bytes it says nothing.
private final class Listener: Sendable {
  let port: UInt16
  /// The connections whose request has come.
  let requests: AsyncStream<Void>
  private let descriptor: Int32

  init(sending text: String?) throws {
    #if canImport(Glibc)
      descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #else
      descriptor = socket(AF_INET, SOCK_STREAM, 0)
    #endif
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let descriptor = descriptor
    let isBound = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        bind(descriptor, pointer, size) == 0 && listen(descriptor, 16) == 0
          && getsockname(descriptor, pointer, &size) == 0
      }
    }
    try #require(isBound)
    port = UInt16(bigEndian: address.sin_port)
    let (requests, sink) = AsyncStream.makeStream(of: Void.self)
    self.requests = requests
    Thread.detachNewThread {
      while case let connection = accept(descriptor, nil, nil), connection >= 0 {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        _ = read(connection, &buffer, buffer.count)
        sink.yield()
        guard let text else { continue }
        let bytes = Array(text.utf8)
        _ = write(connection, bytes, bytes.count)
        close(connection)
      }
    }
  }

  /// Ends the listener: a connection to its port is refused from now on.
  func stop() {
    shutdown(descriptor, Int32(SHUT_RDWR))
    close(descriptor)
  }
}

struct URLSessionTransportTests {
  private func send(
    to port: UInt16, timeout: Duration = .seconds(20), maxResponseBody: Int = 1000
  ) async throws(TransportError) -> Response {
    let request = HTTPRequest(
      method: .post, scheme: "http", authority: "127.0.0.1:\(port)", path: "/v1/orders")
    return try await URLSessionTransport().send(
      request, body: [1], timeout: timeout, maxResponseBody: maxResponseBody)
  }

  /// The response to a request whose server sends these bytes.
  private func response(_ text: String) async throws -> Response {
    let listener = try Listener(sending: text)
    defer { listener.stop() }
    return try await send(to: listener.port)
  }

  /// Whether a failure proves that nothing was sent; `nil` for a response.
  private func isUnsent(
    _ port: UInt16, timeout: Duration = .seconds(20), maxResponseBody: Int = 1000
  ) async -> Bool? {
    do {
      _ = try await send(to: port, timeout: timeout, maxResponseBody: maxResponseBody)
      return nil
    } catch {
      if case .notSent = error { return true }
      return false
    }
  }

  @Test func `a response has its status, fields and body`() async throws {
    let response = try await response("HTTP/1.1 201 Created\r\nX-Mark: a\r\nContent-Length: 2\r\n\r\n{}")
    #expect(response.status.code == 201 && response.body == [0x7B, 0x7D])
    let mark = try #require(HTTPField.Name("X-Mark"))
    #expect(response.fields[mark] == "a")
  }

  @Test func `a refused connection was not sent`() async throws {
    let listener = try Listener(sending: "")
    listener.stop()
    #expect(await isUnsent(listener.port) == true)
  }

  @Test(arguments: ["", "hello\r\n\r\n", "HTTP/1.1 201 Cr", "HTTP/1.1 100 Continue\r\n\r\n"])
  func `a connection that ends without a response may have been carried out`(text: String) async throws {
    let listener = try Listener(sending: text)
    defer { listener.stop() }
    #expect(await isUnsent(listener.port) == false)
  }

  @Test func `a response that is cut off, or too large, is lost`() async throws {
    let listener = try Listener(sending: "HTTP/1.1 201 Created\r\nContent-Length: 20\r\n\r\n{}")
    defer { listener.stop() }
    #expect(await isUnsent(listener.port) == false)
    let large = try Listener(sending: "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}")
    defer { large.stop() }
    #expect(await isUnsent(large.port, maxResponseBody: 1) == false)
  }

  @Test(arguments: ["Location: /other\r\n", ""])
  func `a redirect is a response, and is not followed`(place: String) async throws {
    for status in ["303 Elsewhere", "307 Elsewhere"] {
      let response = try await response("HTTP/1.1 \(status)\r\n\(place)Content-Length: 2\r\n\r\n{}")
      #expect(response.status.code == Int(status.prefix(3)))
      #expect(place.isEmpty || response.body == [0x7B, 0x7D])
    }
  }

  @Test(arguments: [#"Basic realm="a""#, #"Digest realm="a", nonce="b""#, "Bearer", #"Bearer realm="a""#])
  func `a demand for credentials is a response`(challenge: String) async throws {
    let response = try await response(
      "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: \(challenge)\r\nContent-Length: 2\r\n\r\n{}")
    #expect(response.status.code == 401 && response.body == [0x7B, 0x7D])
  }

  @Test func `an early hint is no response, and the one after it is`() async throws {
    let response = try await response(
      "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}")
    #expect(response.status.code == 201 && response.body == [0x7B, 0x7D])
  }

  @Test func `a server that says nothing is lost when the time is over`() async throws {
    let listener = try Listener(sending: nil)
    defer { listener.stop() }
    // Foundation's own time is a minute.
    let time = await ContinuousClock().measure {
      #expect(await isUnsent(listener.port, timeout: .milliseconds(300)) == false)
    }
    #expect(time >= .milliseconds(300) && time < .seconds(55))
  }

  @Test func `an exchange whose task is cancelled is lost at once`() async throws {
    let listener = try Listener(sending: nil)
    defer { listener.stop() }
    let exchange = Task { await isUnsent(listener.port, timeout: .seconds(3600)) }
    var requests = listener.requests.makeAsyncIterator()
    await requests.next()
    exchange.cancel()
    #expect(await exchange.value == false)
  }

  @Test func `exchanges that are cancelled while they end, end once each`() async throws {
    let listener = try Listener(sending: "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}")
    defer { listener.stop() }
    let transport = URLSessionTransport()
    let request = HTTPRequest(
      method: .post, scheme: "http", authority: "127.0.0.1:\(listener.port)", path: "/v1/orders")
    for _ in 0..<20 {
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<10 {
          group.addTask {
            _ = try? await transport.send(request, body: [1], timeout: .seconds(20), maxResponseBody: 1000)
          }
        }
        // The first end cancels the others, wherever they are.
        await group.next()
        group.cancelAll()
      }
    }
    let response = try await transport.send(
      request, body: [1], timeout: .seconds(20), maxResponseBody: 1000)
    #expect(response.status.code == 201)
  }
}
