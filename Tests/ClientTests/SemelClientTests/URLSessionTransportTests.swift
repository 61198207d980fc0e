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

/// A listener on a free port, whose every connection gets the same bytes and is closed.
private final class Listener: Sendable {
  let port: UInt16
  private let descriptor: Int32

  init(sending text: String) throws {
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
    Thread.detachNewThread {
      while case let connection = accept(descriptor, nil, nil), connection >= 0 {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        _ = read(connection, &buffer, buffer.count)
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
  private func send(to port: UInt16, maxResponseBody: Int = 1000) async throws(TransportError) -> Response {
    let request = HTTPRequest(
      method: .post, scheme: "http", authority: "127.0.0.1:\(port)", path: "/v1/orders")
    return try await URLSessionTransport().send(
      request, body: [1], timeout: .seconds(20), maxResponseBody: maxResponseBody)
  }

  /// Whether a failure proves that nothing was sent; `nil` for a response.
  private func isUnsent(_ port: UInt16, maxResponseBody: Int = 1000) async -> Bool? {
    do {
      _ = try await send(to: port, maxResponseBody: maxResponseBody)
      return nil
    } catch {
      if case .notSent = error { return true }
      return false
    }
  }

  @Test func `a response has its status, fields and body`() async throws {
    let listener = try Listener(sending: "HTTP/1.1 201 Created\r\nX-Mark: a\r\nContent-Length: 2\r\n\r\n{}")
    defer { listener.stop() }
    let response = try await send(to: listener.port)
    #expect(response.status.code == 201 && response.body == [0x7B, 0x7D])
    let mark = try #require(HTTPField.Name("X-Mark"))
    #expect(response.fields[mark] == "a")
  }

  @Test func `a refused connection was not sent`() async throws {
    let listener = try Listener(sending: "")
    listener.stop()
    #expect(await isUnsent(listener.port) == true)
  }

  @Test func `a connection that ends without a response may have been carried out`() async throws {
    let listener = try Listener(sending: "")
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

  @Test func `a redirect is a response, and is not followed`() async throws {
    let listener = try Listener(
      sending: "HTTP/1.1 307 Elsewhere\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n")
    defer { listener.stop() }
    #expect(try await send(to: listener.port).status.code == 307)
  }
}
