import Foundation
import GRDB
import HTTPTypes
import SemelClient
import SemelURLSession

/// A transport that dies at the boundaries of a delivery, and makes the planted mistakes.
struct DeadlyTransport: Transport {
  let plan: Plan
  let database: any DatabaseWriter
  private let transport = URLSessionTransport()

  func send(
    _ request: HTTPRequest, body: [UInt8], timeout: Duration, maxResponseBody: Int
  ) async throws(TransportError) -> Response {
    var request = request
    let key = request.headerFields[.idempotencyKey]
    if request.method == .post, plan.bug == .newKeyPerTry {
      request.headerFields[.idempotencyKey] = UUID().uuidString
    }
    if request.method == .post, plan.bug == .deleteBeforeCommit {
      _ = try? await database.write { db in
        try db.execute(
          sql: "UPDATE semel_intent SET state = 3, ending = 'expired' WHERE key = ?", arguments: [key])
      }
    }
    plan.mayDie(at: .sending)
    defer { plan.mayDie(at: .received) }
    if plan.bug == .refreshByEachCall {
      return try await sendRefreshing(request, body, timeout, maxResponseBody)
    }
    return try await transport.send(request, body: body, timeout: timeout, maxResponseBody: maxResponseBody)
  }

  private func sendRefreshing(
    _ request: HTTPRequest, _ body: [UInt8], _ timeout: Duration, _ maxResponseBody: Int
  ) async throws(TransportError) -> Response {
    let response = try await transport.send(
      request, body: body, timeout: timeout, maxResponseBody: maxResponseBody)
    guard response.status == .unauthorized, let fields = try? await Tokens(plan: plan).refresh(refused: [:])
    else {
      return response
    }
    var request = request
    request.headerFields[.authorization] = fields[.authorization]
    return try await transport.send(request, body: body, timeout: timeout, maxResponseBody: maxResponseBody)
  }
}

/// The tokens of one account. A refresh kills the token before it.
struct Tokens: CredentialSource {
  struct Failed: Error {}

  private static let transport = URLSessionTransport()

  let plan: Plan

  func current() async throws -> HTTPFields { try await fetch("current") }

  func refresh(refused: HTTPFields) async throws -> HTTPFields { try await fetch("refresh") }

  private func fetch(_ action: String) async throws -> HTTPFields {
    guard let origin = Origin(plan.tokens) else { throw Failed() }
    let request = HTTPRequest(
      method: .post, scheme: origin.scheme, authority: origin.authority,
      path: "/token/\(action)?account=\(plan.account)&process=\(getpid())")
    let response = try await Self.transport.send(
      request, body: [], timeout: .seconds(5), maxResponseBody: 1000)
    guard response.status == .ok else { throw Failed() }
    return [.authorization: "Bearer \(String(decoding: response.body, as: UTF8.self))"]
  }
}

/// A disk that is full for a moment now and then: the database may not grow.
func fillDisk(_ database: any DatabaseWriter) async {
  while !Task.isCancelled {
    try? await Task.sleep(for: .milliseconds(Int.random(in: 2000...6000)))
    try? await database.write { db in
      let pages = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 1
      _ = try Int.fetchOne(db, sql: "PRAGMA max_page_count = \(pages)")
    }
    try? await Task.sleep(for: .milliseconds(Int.random(in: 200...1000)))
    try? await database.write { db in _ = try Int.fetchOne(db, sql: "PRAGMA max_page_count = 4294967294") }
  }
}
