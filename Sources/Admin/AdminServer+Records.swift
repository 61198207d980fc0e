import Foundation
import Hummingbird
import Idempotency
import NIOCore

extension AdminServer {
  /// The maximum size of a request body, in MiB. A resolution contains the body of a response.
  private static let maxMebibytes = 8

  func addRecords(to routes: AdminRoutes) {
    routes.on(.listRecords) { [recordAdmin] request, _ in
      let query = try request.parameters("state", "cursor")
      let state = query["state"]
      try require(
        state == nil || state == "in_flight" || state == "unknown" || state == RecordDocument.unreadable,
        "state must be in_flight, unknown or unreadable")
      return Response.json(
        try await recordAdmin.list(after: query["cursor"]) { state == nil || $0.state == state })
    }
    routes.on(.countRecords) { [recordAdmin] request, _ in
      _ = try request.parameters()
      let count = try await recordAdmin.openCount()
      return Response.json(
        ["in_flight": count.inFlight, "unknown": count.unknown, "unreadable": count.unreadable])
    }
    addStatements(to: routes)
    routes.on(.getRecord) { [recordAdmin] _, context in
      Response.json(try await recordAdmin.show(try Self.id(context)))
    }
    routes.on(.forgetRecord) { [recordAdmin] request, context in
      let reason = try request.parameters("reason")["reason"]
      return Response.json(
        try await recordAdmin.forget(try Self.id(context), by: context.peer, reason: reason))
    }
    routes.on(.resolveRecord) { [recordAdmin] request, context in
      let id = try Self.id(context)
      let document: ResolutionDocument = try await Self.decode(request)
      return Response.json(try await recordAdmin.resolve(id, document, by: context.peer))
    }
  }

  private func addStatements(to routes: AdminRoutes) {
    routes.on(.findRecord) { [recordAdmin] request, _ in
      let query: RecordQuery = try await Self.decode(request)
      return Response.json(try await recordAdmin.find(query))
    }
    routes.on(.searchRecords) { [recordAdmin] request, _ in
      let search: RecordSearch = try await Self.decode(request)
      return Response.json(try await recordAdmin.search(search))
    }
    routes.on(.putRecord) { [recordAdmin] request, context in
      let statement: RecordStatement = try await Self.decode(request)
      return Response.json(try await recordAdmin.put(statement, by: context.peer))
    }
  }

  static func id(_ context: AdminContext) throws -> RecordID {
    guard let text = context.parameters.get("id"), let id = RecordID(text: text) else {
      throw AdminError.bad(
        "a record's id is the 43 characters of Idempotency-Request-Id (in the log, of record)")
    }
    return id
  }

  private static func decode<Document: OperatorDocument>(_ request: Request) async throws -> Document {
    let text = try await content(of: request)
    // Foundation reads other encodings of Unicode, too; the check for repeated members does not.
    guard String(validating: text, as: UTF8.self) != nil, !text.contains(0) else {
      throw AdminError.bad("the body must be JSON in UTF-8 (RFC 8259, section 8.1)")
    }
    let document: Document
    do {
      document = try JSONDecoder().decode(Strict<Document>.self, from: Data(text)).wrappedValue
    } catch {
      throw AdminError.bad("the body is not the JSON that is expected here: \(reason(error))")
    }
    if let repeated = RepeatedMember(in: text) {
      throw AdminError.bad("\(repeated.path) is given twice: give it once")
    }
    return document
  }

  private static func content(of request: Request) async throws -> [UInt8] {
    do {
      return Array(try await request.body.collect(upTo: maxMebibytes << 20).readableBytesView)
    } catch is NIOTooManyBytesError {
      // Base64 makes four characters of three bytes.
      throw AdminError(
        .contentTooLarge,
        "the request is larger than \(maxMebibytes) MiB, which leaves room for bodies of \(maxMebibytes * 3 / 4) MiB "
          + "in it: state a shorter body")
    }
  }

  /// The text for a decoding error, which names the member at fault but never contains its value.
  private static func reason(_ error: any Error) -> String {
    switch error {
    case let error as UnknownMember:
      "there is no member \(error.path); there are: \(error.known.joined(separator: ", "))"
    case DecodingError.keyNotFound(let key, let context):
      "\(path(context.codingPath + [key]).joined(separator: ".")) is missing"
    case DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context),
      DecodingError.dataCorrupted(let context):
      MemberForm.demand(at: path(context.codingPath))
    default: "it cannot be read"
    }
  }

  /// The names down to a member, without the indices of lists.
  private static func path(_ keys: [any CodingKey]) -> [String] {
    keys.filter { $0.intValue == nil }.map(\.stringValue)
  }
}
