import Foundation
import HTTPTypes
import Testing

@testable import Admin

/// The description of the admin API, against the operations that the listener registers.
struct OpenAPIDocumentTests {
  typealias Object = [String: Any]

  private static let methods: Set = ["get", "put", "post", "delete", "patch"]

  private func document() throws -> Object {
    try #require(try JSONSerialization.jsonObject(with: Data(OpenAPIDocument.text.utf8)) as? Object)
  }

  /// Calls `body` with each operation of the document: its path, method and object, and the parameters of its path.
  private func operations() throws -> [(path: String, method: String, object: Object, shared: [Object])] {
    let paths = try #require(try document()["paths"] as? [String: Object])
    return paths.flatMap { path, item in
      item.filter { Self.methods.contains($0.key) }.map { method, operation in
        (path, method, operation as? Object ?? [:], item["parameters"] as? [Object] ?? [])
      }
    }
  }

  /// All objects of the document.
  private func objects(in value: Any) -> [Object] {
    if let object = value as? Object { return [object] + object.values.flatMap(objects) }
    if let list = value as? [Any] { return list.flatMap(objects) }
    return []
  }

  @Test func `every operation is described, and nothing else`() throws {
    let described = Set(
      try operations().map { "\($0.method.uppercased()) \($0.path) \($0.object["operationId"] ?? "")" })
    let registered = AdminOperation.allCases.map { "\($0.method) \($0.path) \($0.rawValue)" }
    #expect(described == Set(registered))
    #expect(Set(registered).count == registered.count)
    #expect(try document()["openapi"] as? String == "3.1.0")
  }

  @Test func `every reference leads to an object of the document`() throws {
    let document = try document()
    let references = objects(in: document).compactMap { $0["$ref"] as? String }
    #expect(references.count > 50)
    for reference in references {
      let found = reference.split(separator: "/").dropFirst().reduce(document as Any?) { part, name in
        (part as? Object)?[String(name)]
      }
      #expect(found is Object, "\(reference)")
    }
  }

  @Test func `an operation has its path's parameters, a summary and the refusals of its access`() throws {
    for (path, method, object, shared) in try operations() {
      let operation = try #require(
        AdminOperation.allCases.first { $0.path == path && $0.method.rawValue.lowercased() == method })
      let given = shared + (object["parameters"] as? [Object] ?? [])
      #expect(path.contains("{id}") == given.contains { ($0["$ref"] as? String)?.hasSuffix("/Id") == true })
      #expect((object["summary"] as? String)?.isEmpty == false)
      let responses = Set(try #require(object["responses"] as? Object).keys)
      #expect(responses.contains("401") == (operation.access != .open), "\(method) \(path)")
      #expect(responses.contains("403") == (operation.access == .operate), "\(method) \(path)")
      #expect((object["requestBody"] != nil) == (method == "post"), "\(method) \(path)")
    }
  }

  @Test func `an operator's documents have the members that are described`() throws {
    let components = try #require(try document()["components"] as? [String: [String: Object]])
    func members(_ name: String) throws -> Set<String> {
      Set(try #require(components["schemas"]?[name]?["properties"] as? Object).keys)
    }
    func names<Document: OperatorDocument>(_: Document.Type) -> Set<String> {
      Set(Document.CodingKeys.allCases.map(\.stringValue))
    }
    #expect(try members("Resolution") == names(ResolutionDocument.self))
    #expect(try members("RecordQuery") == names(RecordQuery.self))
    #expect(try members("RecordSearch") == names(RecordSearch.self))
    #expect(try members("RecordStatement") == names(RecordStatement.self))
  }
}
