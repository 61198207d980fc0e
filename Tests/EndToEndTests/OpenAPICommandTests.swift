import Foundation
import TestSupport
import Testing

/// `semel openapi` on files, as a person or a build runs it.
struct OpenAPICommandTests {
  private static let configuration = """
    listen: [{address: 127.0.0.1:8080}]
    upstreams: {orders: {url: "http://127.0.0.1:9000"}}
    store: {kind: embedded, path: records.db}
    routes:
      - {name: create, match: {methods: [POST], path: /v1/orders}, caller: {parts: ["header:Authorization"]}}
      - {name: refund, match: {path: /v1/refunds}, caller: {parts: ["header:Authorization"]}}

    """

  private func openapi(_ document: String, _ arguments: [String] = []) async throws -> (
    exit: ManagedProcess.Exit, output: String, errors: String
  ) {
    let directory = TemporaryDirectory()
    let files = (directory.file("semel.yaml"), directory.file("api"))
    try Self.configuration.write(toFile: files.0, atomically: true, encoding: .utf8)
    try document.write(toFile: files.1, atomically: true, encoding: .utf8)
    let process = try ManagedProcess([SemelProcess.binary, "openapi", files.0, files.1] + arguments)
    return (try await process.exit(), process.output, process.errors)
  }

  @Test func `a document is printed with its additions, and standard error says what is protected`()
    async throws
  {
    let document = """
      {"openapi": "3.0.3", "info": {"title": "Orders", "version": "1"}, "servers": [{"url": "/v1"}],
       "paths": {"/orders": {"get": {"responses": {"200": {"description": "All"}}},
                             "post": {"responses": {"201": {"description": "Created"}}}}}}
      """
    let (exit, output, errors) = try await openapi(document)
    #expect(exit == .code(0), "\(errors)")
    #expect(
      errors == """
        POST /orders: route create, key header:idempotency-key
        1 more operations are not protected
        warning: route refund: no operation of the document meets it

        """)
    let object = try #require(try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any])
    let paths = try #require(object["paths"] as? [String: [String: [String: Any]]])
    let post = try #require(paths["/orders"]?["post"])
    let parameters = try #require(post["parameters"] as? [[String: Any]])
    #expect(parameters.map { $0["name"] as? String } == ["Idempotency-Key"])
    #expect(parameters.map { $0["required"] as? Bool } == [true])
    let responses = try #require(post["responses"] as? [String: Any])
    #expect(Set(responses.keys).isSuperset(of: ["201", "400", "401", "409", "503"]), "\(output)")
  }

  @Test func `a document without a protected operation ends with 1, and so does one of another version`()
    async throws
  {
    let none = try await openapi("openapi: 3.1.0\npaths: {/orders: {get: {responses: {}}}}\n")
    #expect(none.exit == .code(1) && none.output.hasPrefix("openapi: 3.1.0\n"), "\(none)")
    #expect(none.errors.contains("1 more operations are not protected"), "\(none)")
    let old = try await openapi("swagger: '2.0'\n")
    #expect(old.exit == .code(1) && old.output.isEmpty, "\(old)")
    #expect(old.errors.contains("the document has version 2.0: convert it first"), "\(old)")
  }

  @Test func `the address of the API chooses the routes`() async throws {
    let document = "openapi: 3.1.0\npaths: {/refunds: {post: {responses: {}}}}\n"
    let moved = try await openapi(document, ["--server", "https://api.example.com/v1"])
    #expect(moved.exit == .code(0) && moved.errors.contains("POST /refunds: route refund"), "\(moved)")
  }
}
