import Foundation
import Hummingbird
import NIOCore
import NIOHTTP1

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

/// Replaces the `Host` of a request whose target is in absolute form by the target's authority (RFC 9112, section
/// 3.2.2), which `PageGuard` then judges. The layers above drop the authority of such a target unread.
final class AbsoluteTarget: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias InboundOut = HTTPServerRequestPart

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard case .head(var head) = unwrapInboundIn(data), !head.uri.hasPrefix("/"), head.uri != "*" else {
      return context.fireChannelRead(data)
    }
    head.headers.replaceOrAdd(name: "Host", value: Self.authority(of: head.uri))
    context.fireChannelRead(wrapInboundOut(.head(head)))
  }

  /// The authority of an absolute target; empty, which is nobody's, for any other text and for another scheme.
  private static func authority(of target: String) -> String {
    let scheme = "http://"
    guard target.prefix(scheme.count).lowercased() == scheme else { return "" }
    return String(target.dropFirst(scheme.count).prefix { $0 != "/" && $0 != "?" && $0 != "#" })
  }
}

/// Puts handlers behind the decoder of the pipeline that it is added to.
final class BehindDecoder: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = Any

  private let handlers: [any ChannelHandler]

  init(_ handlers: any ChannelHandler...) { self.handlers = handlers }

  func handlerAdded(context: ChannelHandlerContext) {
    let pipeline = context.pipeline.syncOperations
    do {
      let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
      try pipeline.addHandlers(handlers, position: .after(decoder))
    } catch {
      context.close(promise: nil)
    }
  }
}
