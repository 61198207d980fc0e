import Foundation
import TestSupport
import Testing

/// `semel check --live` on backends.
struct LiveCheckTests {
  /// The verdict on a backend: the exit code, and the warnings about the upstream.
  private func check(_ url: String, _ member: String = "") async throws -> (
    exit: ManagedProcess.Exit, errors: String
  ) {
    let directory = TemporaryDirectory()
    try """
    upstreams: {orders: {url: "\(url)"\(member)}}
    store: {kind: embedded, path: \(directory.file("semel.db"))}
    """.write(toFile: directory.file("semel.yaml"), atomically: true, encoding: .utf8)
    let process = try ManagedProcess([
      SemelProcess.binary, "check", "--live", directory.file("semel.yaml"),
    ])
    let exit = try await process.exit()
    let warnings = process.errors.split(separator: "\n").filter { $0.hasPrefix("warning: upstreams.") }
    return (exit, warnings.joined(separator: "\n"))
  }

  private func check(responding bytes: String) async throws -> (
    exit: ManagedProcess.Exit, errors: String, request: String
  ) {
    let request = Watched("")
    let server = try RawServer { connection in
      let text = try connection.readRequest()
      request.withValue { $0 = text }
      try connection.write(bytes)
    }
    let (exit, errors) = try await check("http://127.0.0.1:\(server.port)")
    return (exit, errors, request.withValue { $0 })
  }

  @Test func `a backend is asked once, and one whose response can be kept is not mentioned`() async throws {
    let (exit, errors, request) = try await check(
      responding: "HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nabc")
    #expect(exit == .code(0) && errors.isEmpty, "\(errors)")
    #expect(request.hasPrefix("GET / HTTP/1.1\r\nHost: 127.0.0.1:"), "\(request)")
  }

  @Test func `a response that breaks a rule of HTTP is a warning that names the rule`() async throws {
    for fault in ["X: a\u{1}b\r\n\r\n", "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"] {
      let (exit, errors, _) = try await check(responding: "HTTP/1.1 200 OK\r\n" + fault)
      #expect(exit == .code(0))
      let start = "warning: upstreams.orders: the response to GET / breaks a rule of HTTP"
      #expect(errors.hasPrefix(start) && errors.contains("behind its status 200"), "\(errors)")
    }
  }

  @Test(arguments: [
    "200 OK\r\nX: a\r\n b\r\nContent-Length: 1\r\n\r\na", "200 OK\r\nX : a\r\nContent-Length: 1\r\n\r\na",
    "200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
    "204 No Content\r\nContent-Length: 1\r\n\r\n", "200 OK\r\nContent-Length: 1\r\n\r\nabc",
  ])
  func `a fault that is put right, and costs no response, is not mentioned`(response: String) async throws {
    let (exit, errors, _) = try await check(responding: "HTTP/1.1 " + response)
    #expect(exit == .code(0) && errors.isEmpty, "\(errors)")
  }

  @Test func `a backend that does not speak HTTP/2 where it must is a warning that says so`() async throws {
    let server = try RawServer { connection in
      _ = try connection.readRequest()
      try connection.write("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
      connection.readToEnd()
    }
    let (exit, errors) = try await check(
      "http://127.0.0.1:\(server.port)", ", http2: prior_knowledge, connect_retries: 0")
    #expect(exit == .code(0))
    let start = "warning: upstreams.orders: the backend cannot be reached: the backend does not speak HTTP/2"
    #expect(errors.hasPrefix(start) && errors.hasSuffix("; write http2: off for HTTP/1.1"), "\(errors)")
  }

  @Test func `a response that only the end of its connection delimits is a warning`() async throws {
    let (exit, errors, _) = try await check(responding: "HTTP/1.1 200 OK\r\n\r\nabc")
    #expect(exit == .code(0))
    let start = "warning: upstreams.orders: only the connection's end marks the end of the response to GET /"
    #expect(errors.hasPrefix(start), "\(errors)")
  }

  @Test func `a backend that cannot be reached, or does not respond, is a warning`() async throws {
    let port = try DeadPort.refusing()
    let dead = try await check("http://127.0.0.1:\(port.port)", ", connect_retries: 0")
    #expect(dead.exit == .code(0))
    let start = "warning: upstreams.orders: the backend cannot be reached: "
    #expect(dead.errors.hasPrefix(start), "\(dead.errors)")

    let silent = try RawServer { $0.readToEnd() }
    let late = try await check("http://127.0.0.1:\(silent.port)", ", response_timeout: 50ms")
    #expect(late.exit == .code(0))
    #expect(late.errors.contains("does not respond to GET / within 50 ms"), "\(late.errors)")
  }
}
