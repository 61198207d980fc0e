import Foundation
import Hummingbird

/// The reason for which the admin listener refuses a request.
struct AdminError: Error, HTTPResponseError {
  let status: HTTPResponse.Status
  let detail: String
  /// The present state of the record that a change does not fit; `nil` if the refusal is for another reason.
  var state: String?
  var attempt: Int?

  init(_ status: HTTPResponse.Status, _ detail: String) {
    self.status = status
    self.detail = detail
  }

  static func bad(_ detail: String) -> AdminError { AdminError(.badRequest, detail) }

  /// The problem document (RFC 9457), with two members of Semel's own.
  private struct Problem: Encodable {
    let title: String
    let detail: String
    let state: String?
    let attempt: Int?
  }

  func response(from request: Request, context: some RequestContext) throws -> Response {
    let problem = Problem(title: status.reasonPhrase, detail: detail, state: state, attempt: attempt)
    return Response.json(problem, status: status, type: "application/problem+json")
  }
}

/// Refuses a request unless a condition is met.
func require(_ isMet: Bool, _ detail: @autoclosure () -> String) throws(AdminError) {
  if !isMet { throw .bad(detail()) }
}

extension Response {
  static func text(
    _ text: String, status: HTTPResponse.Status, type: String = "text/plain; charset=utf-8"
  ) -> Response {
    Response(
      status: status, headers: [.contentType: type, .cacheControl: "no-store"],
      body: .init(byteBuffer: ByteBuffer(string: text)))
  }

  /// Creates a response with a JSON document, whose members are in alphabetical order.
  static func json(
    _ document: some Encodable, status: HTTPResponse.Status = .ok, type: String = "application/json"
  ) -> Response {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.keyEncodingStrategy = .convertToSnakeCase
    let data = (try? encoder.encode(document)) ?? Data("{}".utf8)
    return text(String(decoding: data, as: UTF8.self) + "\n", status: status, type: type)
  }
}
