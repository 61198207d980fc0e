import Idempotency
import Settings
import Testing
import Yams

@testable import OpenAPI

/// The additions of a configuration's protected routes to a document.
struct AnnotationTests {
  private static let document = """
    openapi: 3.1.0
    info: {title: Orders, version: '1'}
    servers:
      - url: https://api.example.com/v1
    paths:
      /orders:
        get:
          responses:
            '200': {description: All orders}
        post:
          parameters:
            - $ref: '#/components/parameters/Trace'
          responses:
            '201':
              $ref: '#/components/responses/Created'
            '409':
              description: No such shop
              content:
                application/json: {schema: {type: object}}
            default:
              $ref: 'errors.yaml#/Any'
      /orders/{id}/capture:
        parameters:
          - {name: idempotency-key, in: header, required: true, schema: {type: string}}
        post:
          responses: {}
    components:
      parameters:
        Trace: {name: traceparent, in: header, schema: {type: string}}
      responses:
        Created: {description: The order}

    """

  private static let routes = """
    routes:
      - {name: create, match: {methods: [POST], path: /v1/orders}, caller: {parts: ["header:Authorization"]}}
      - {name: capture, match: {path: "/v1/orders/{id}/capture"}, caller: {shared: true}, mismatch_status: 422}
      - {name: refund, match: {path: /v1/refunds}, caller: {shared: true}}

    """

  private func policies(_ routes: String = Self.routes) throws -> [RoutePolicy] {
    let text = "upstreams: {orders: {url: \"http://127.0.0.1:9000\"}}\n" + routes
    return try Settings.load(text: text, file: "semel.yaml", environment: [:]).get().routes
  }

  private func annotated(
    _ document: String = Self.document, _ routes: String = Self.routes, server: String? = nil
  ) throws -> Annotation {
    try Annotation(APIDocument(document), by: policies(routes), server: server.map(ServerAddress.init))
  }

  @Test func `an operation of a protected route gets the key, the markers and the refusals`() throws {
    let annotation = try annotated()
    #expect(
      annotation.operations == [
        .init(name: "POST /orders", route: "create", isCertain: true, key: ["header:idempotency-key"]),
        .init(
          name: "POST /orders/{id}/capture", route: "capture", isCertain: true,
          key: ["header:idempotency-key"]),
      ])
    #expect(annotation.unprotected == 1 && annotation.unmet == ["refund"])
    let paths = try #require(annotation.document.root.member("paths"))
    let create = try #require(paths.member("/orders")?.member("post"))
    let parameters = try #require(create.member("parameters")?.elements)
    #expect(parameters.count == 2)
    #expect(parameters[1].member("name")?.scalar?.string == "Idempotency-Key")
    #expect(parameters[1].member("required")?.scalar?.string == "true")
    let responses = try #require(create.member("responses"))
    let names = responses.mapping?.compactMap { $0.key.scalar?.string }
    #expect(
      names == ["201", "409", "default", "400", "401", "408", "413", "429", "502", "503", "504"])
    // The target of a reference stands in its place, since other operations may share it.
    #expect(responses.member("201")?.member("description")?.scalar?.string == "The order")
    let markers = responses.member("201")?.member("headers")?.mapping?.compactMap { $0.key.scalar?.string }
    #expect(
      markers == [
        "Idempotency-Status", "Idempotent-Replayed", "Idempotency-Recorded-At", "Idempotency-Expires",
      ])
    // The document's own text stays, and a reference to elsewhere.
    let conflict = try #require(responses.member("409"))
    #expect(conflict.member("description")?.scalar?.string == "No such shop")
    let types = conflict.member("content")?.mapping?.compactMap { $0.key.scalar?.string }
    #expect(types == ["application/json", "application/problem+json"])
    #expect(responses.member("default")?.member("$ref")?.scalar?.string == "errors.yaml#/Any")
    let text = try #require(responses.member("400")?.member("description")?.scalar?.string)
    #expect(text.contains("(key_missing)") && text.contains("(bad_request)"), "\(text)")
    #expect(responses.member("400")?.member("headers") == nil)
    #expect(responses.member("503")?.member("headers")?.member("Retry-After") != nil)
  }

  @Test func `a key that the path declares is declared once, and an open caller is refused nowhere`() throws {
    let paths = try #require(try annotated().document.root.member("paths"))
    let capture = try #require(paths.member("/orders/{id}/capture")?.member("post"))
    #expect(capture.member("parameters") == nil)
    let responses = try #require(capture.member("responses"))
    #expect(responses.member("401") == nil)
    let text = try #require(responses.member("422")?.member("description")?.scalar?.string)
    #expect(text.contains("(payload_mismatch)"), "\(text)")
  }

  @Test func `the other operations and the order of members stay as they are`() throws {
    let before = try APIDocument(Self.document)
    let after = try annotated().document
    #expect(
      after.root.member("paths")?.member("/orders")?.member("get")
        == before.root.member("paths")?.member("/orders")?.member("get"))
    #expect(
      after.root.mapping?.compactMap { $0.key.scalar?.string }
        == ["openapi", "info", "servers", "paths", "components"])
    let text = try after.text()
    #expect(text.hasPrefix("openapi: 3.1.0\ninfo:\n  title: Orders\n  version: '1'\n"), "\(text)")
    #expect(text.contains("'400':\n"), "\(text)")
  }

  @Test(arguments: [false, true])
  func `a second annotation changes nothing`(isJSON: Bool) throws {
    var document = try APIDocument(Self.document)
    if isJSON { document = try APIDocument(JSONText.text(document.root)) }
    let routes = try policies()
    let once = try Annotation(document, by: routes).document.text()
    #expect(once.hasPrefix("{") == isJSON)
    #expect(try Annotation(APIDocument(once), by: routes).document.text() == once)
    // Both are the same document.
    #expect(JSONText.text(try APIDocument(once).root) == JSONText.text(try annotated().document.root))
  }

  @Test func `a component of the document's own is not overwritten`() throws {
    let document = Self.document.replacing(
      "components:\n", with: "components:\n  schemas:\n    IdempotencyProblem: {type: string}\n")
    #expect(
      throws: APIDocument.Fault(
        description: "components.schemas.IdempotencyProblem is the document's own: give it another name")
    ) { try annotated(document) }
  }

  @Test func `a route that takes some requests alone makes the key optional`() throws {
    for condition in ["headers: {X-Version: '2'}", "graphql: mutation"] {
      let routes = """
        routes:
          - name: some
            match: {methods: [POST], path: /v1/orders, \(condition)}
            caller: {shared: true}
        """
      let annotation = try annotated(Self.document, routes)
      #expect(annotation.operations.map(\.isCertain) == [false], "\(condition)")
      let text = try annotation.document.text()
      #expect(text.contains("required: false"), "\(text)")
    }
  }

  @Test func `an unprotected route before a protected one keeps its operations`() throws {
    let routes = """
      routes:
        - {name: open, match: {path: /v1/orders}, idempotency: off}
        - {name: all, match: {path: "/v1/**"}, caller: {shared: true}}
        - {name: tried, match: {path: "/**"}, caller: {shared: true}, shadow: true}
      """
    let annotation = try annotated(Self.document, routes)
    #expect(annotation.operations.map(\.name) == ["POST /orders/{id}/capture"])
    #expect(annotation.unmet == [])
  }

  @Test func `the server chooses host and base path`() throws {
    let routes = """
      routes:
        - {name: a, match: {path: /orders, host: a.example}, caller: {shared: true}}
        - {name: b, match: {path: /v1/orders, host: b.example}, caller: {shared: true}}
      """
    #expect(try annotated(Self.document, routes).operations.isEmpty)
    #expect(
      try annotated(Self.document, routes, server: "https://a.example:8443/").operations.map(\.route) == ["a"]
    )
    #expect(
      try annotated(Self.document, routes, server: "https://b.example/v1/").operations.map(\.route) == ["b"])
    // Without a host the route may be any of them.
    let open = try annotated(Self.document, routes, server: "/v1").operations
    #expect(open.map(\.route) == ["b"] && open.map(\.isCertain) == [false])
    #expect(ServerAddress("https://[2001:db8::1]:8443/v2?x").host == "[2001:db8::1]")
  }

  @Test func `an operation's own server counts, with the defaults of its variables`() throws {
    let document = Self.document.replacing(
      "  /orders:\n",
      with: """
          /orders:
            servers:
              - url: https://api.example.com/{version}
                variables: {version: {default: v1}}

        """
    ).replacing("example.com/v1", with: "example.com/none")
    #expect(try annotated(document).operations.map(\.name) == ["POST /orders"])
  }

  @Test func `a key in the body is left to the document, and another API's errors to its form`() throws {
    let routes = """
      routes:
        - {name: pay, profile: square, match: {methods: [POST], path: /v1/orders}, caller: {shared: true}}
      """
    let annotation = try annotated(Self.document, routes)
    #expect(annotation.operations.map(\.key) == [["json:/idempotency_key"]])
    let text = try annotation.document.text()
    #expect(
      !text.contains("problem+json") && text.contains("#/components/schemas/IdempotencyError'"), "\(text)")
    let paths = annotation.document.root.member("paths")
    #expect(paths?.member("/orders")?.member("post")?.member("parameters")?.elements.count == 1)
  }
}
