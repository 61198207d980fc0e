import Idempotency
import Yams

/// An OpenAPI document with what protected routes add to its operations. A second annotation changes nothing.
public struct Annotation {
  /// An operation that meets a protected route.
  public struct Operation: Equatable, Sendable {
    /// The method and the path, as the document has it.
    public let name: String
    public let route: String
    /// Whether every request of the operation meets the route: it depends on no field, body or host.
    public let isCertain: Bool
    /// The places of the key, in the notation of the configuration.
    public let key: [String]
  }

  public private(set) var document: APIDocument
  public private(set) var operations: [Operation] = []
  /// The number of operations that meet no protected route.
  public private(set) var unprotected = 0
  /// The protected routes that no operation meets.
  public private(set) var unmet: [String] = []

  private let table: RouteTable
  private let server: ServerAddress?

  /// - Parameter server: The address of the API; `nil` takes that of the document.
  public init(
    _ document: APIDocument, by policies: [RoutePolicy], server: ServerAddress? = nil
  ) throws(APIDocument.Fault) {
    self.document = document
    self.server = server
    table = RouteTable(policies)
    var formats: Set<ErrorFormat> = []
    var paths = document.root.member("paths") ?? .members([])
    for (path, item) in paths.mapping.map(Array.init) ?? [] {
      guard let path = path.scalar?.string else { continue }
      paths.set(path, to: annotated(item, at: path, formats: &formats))
    }
    if !operations.isEmpty {
      self.document.root.set("paths", to: paths)
      try Components.add(to: &self.document, formats: formats)
    }
    let met = Set(operations.map(\.route))
    unmet = policies.filter { $0.isEnforced && !met.contains($0.name) }.map(\.name)
  }

  private static let methods = ["get", "put", "post", "delete", "options", "head", "patch", "trace"]

  private mutating func annotated(_ item: Node, at path: String, formats: inout Set<ErrorFormat>) -> Node {
    var item = item
    for method in Self.methods {
      guard let operation = item.member(method) else { continue }
      guard let (policy, isCertain) = match(method, path, operation, in: item) else {
        unprotected += 1
        continue
      }
      operations.append(
        Operation(
          name: "\(method.uppercased()) \(path)", route: policy.name, isCertain: isCertain,
          key: policy.key.from.map(\.text)))
      let format = policy.profile?.errorFormat ?? .problem
      formats.insert(format)
      var changed = operation
      addKey(to: &changed, of: policy, isCertain: isCertain, shared: item.member("parameters"))
      addResponses(to: &changed, of: policy, as: format)
      item.set(method, to: changed)
    }
    return item
  }

  /// The protected route of an operation. A parameter of the path stands for any segment.
  private func match(
    _ method: String, _ path: String, _ operation: Node, in item: Node
  ) -> (RoutePolicy, isCertain: Bool)? {
    let servers = [operation, item, document.root].map { $0.member("servers") }
    let address = server ?? ServerAddress(first: servers) ?? ServerAddress("/")
    let sample = path.replacing(/\{[^}\/]*\}/, with: "semel-any")
    return table.documented(method: method.uppercased(), host: address.host, path: address.base + sample)
  }

  /// Adds the fields and the query's parameters that are the key. One in the body is the API's own.
  private func addKey(
    to operation: inout Node, of policy: RoutePolicy, isCertain: Bool, shared: Node?
  ) {
    let present = ((operation.member("parameters")?.elements ?? []) + (shared?.elements ?? [])).map(resolved)
    let isRequired = isCertain && policy.idempotency == .required && policy.key.from.count == 1
    let added = policy.key.from.flatMap(\.parts).compactMap { source -> Node? in
      guard let (place, name) = source.parameter, !present.contains(where: { $0.isParameter(place, name) })
      else {
        return nil
      }
      return Self.parameter(place, name, isRequired: isRequired, policy)
    }
    guard !added.isEmpty else { return }
    operation.set(
      "parameters", to: .sequence(.init((operation.member("parameters")?.elements ?? []) + added)))
  }

  private static func parameter(
    _ place: String, _ name: String, isRequired: Bool, _ policy: RoutePolicy
  ) -> Node {
    var schema: [(name: String, value: Node)] = [("type", .text("string"))]
    if policy.key.format == .uuid { schema.append(("format", .text("uuid"))) }
    if policy.key.minLength > 1 { schema.append(("minLength", .literal("\(policy.key.minLength)"))) }
    schema.append(("maxLength", .literal("\(policy.key.maxLength)")))
    let text =
      "Names one operation: send the same key with every retry of it, and a new key with a new operation. "
      + "A key is remembered for \(policy.remember.count / 1000) seconds."
    return .members([
      ("name", .text(name)), ("in", .text(place)), ("required", .literal("\(isRequired)")),
      ("description", .text(text)), ("schema", .members(schema)),
    ])
  }

  /// Adds the markers to the operation's own responses, and then the refusals.
  private func addResponses(to operation: inout Node, of policy: RoutePolicy, as format: ErrorFormat) {
    var responses = operation.member("responses") ?? .members([])
    let refusals = Refusal.all(of: policy)
    for (key, value) in responses.mapping.map(Array.init) ?? [] {
      guard let status = key.scalar?.string, !status.hasPrefix("x-") else { continue }
      let response = resolved(value)
      // A reference that leads out of the document stays as it is.
      guard response.member("$ref") == nil, !Self.isOnlyRefusal(response) else { continue }
      responses.set(status, to: Self.marked(response))
    }
    for refusal in refusals {
      let status = "\(refusal.status)"
      guard let present = responses.member(status) else {
        responses.set(status, to: refusal.response(as: format), isQuoted: true)
        continue
      }
      if present.member("$ref") == nil { responses.set(status, to: refusal.joined(to: present, as: format)) }
    }
    operation.set("responses", to: responses)
  }

  /// Whether a response is a refusal that an earlier annotation has added, which the backend never sends.
  private static func isOnlyRefusal(_ response: Node) -> Bool {
    let content = response.member("content")?.mapping.map(Array.init) ?? []
    let reference = content.first?.value.member("schema")?.member("$ref")?.scalar?.string
    return content.count == 1
      && [Components.problem, Components.otherError].contains { reference == "#/components/schemas/\($0)" }
  }

  private static func marked(_ response: Node) -> Node {
    var response = response
    var headers = response.member("headers") ?? .members([])
    let present = Set(
      (headers.mapping.map(Array.init) ?? []).compactMap { $0.key.scalar?.string.lowercased() })
    for marker in Components.markers where !present.contains(marker.field.lowercased()) {
      headers.set(marker.field, to: .reference(.headers, marker.component))
    }
    response.set("headers", to: headers)
    return response
  }

  /// A node, or what its reference leads to within the document.
  private func resolved(_ node: Node) -> Node {
    guard let reference = node.member("$ref")?.scalar?.string, reference.hasPrefix("#/") else { return node }
    var found: Node? = document.root
    for token in reference.dropFirst(2).split(separator: "/") {
      found = found?.member(String(token).replacing("~1", with: "/").replacing("~0", with: "~"))
    }
    return found ?? node
  }
}

extension Node {
  /// Whether a parameter object has this place and name. Names of fields are the same in each letter case.
  fileprivate func isParameter(_ place: String, _ name: String) -> Bool {
    guard member("in")?.scalar?.string == place, let own = member("name")?.scalar?.string else {
      return false
    }
    return place == "header" ? own.lowercased() == name.lowercased() : own == name
  }
}

extension KeySource {
  /// The place and the name of a parameter object; `nil` for a key in the body.
  fileprivate var parameter: (place: String, name: String)? {
    switch self {
    case .header(let name):
      (
        "header",
        name.split(separator: "-", omittingEmptySubsequences: false).map(\.capitalisedWord).joined(
          separator: "-")
      )
    case .query(let name): ("query", name)
    case .json, .form, .payload, .composite: nil
    }
  }
}

extension Substring {
  fileprivate var capitalisedWord: String { prefix(1).uppercased() + dropFirst() }
}
