import Idempotency
import NIOCore
import Platform
import Wire

/// A backend with one response to everything. Confined to its loop.
final class ScriptedBackend: Upstream, @unchecked Sendable {
  /// The failures of the first attempts to read the response.
  var failures: [UpstreamFailure] = []
  var status = 201
  var body = ""
  private(set) var requests: [UpstreamRequest] = []

  func begin(_ request: UpstreamRequest) -> ScriptedExchange {
    requests.append(request)
    return ScriptedExchange(request, status: status, body: ByteBuffer(string: body), failures: failures)
  }
}

/// One request to it, and the response, before which it takes the request's permit. Confined to its loop.
final class ScriptedExchange: UpstreamExchange, @unchecked Sendable {
  private let permit: SendPermit?
  private let response: UpstreamHead
  private let body: ByteBuffer
  private var failures: [UpstreamFailure]

  init(_ request: UpstreamRequest, status: Int, body: ByteBuffer, failures: [UpstreamFailure]) {
    permit = request.permit
    response = UpstreamHead(
      head: MessageHead(start: .status(status, reason: 0..<0)), isDelimitedByClose: false)
    self.body = body
    self.failures = failures
  }

  func head(within span: Milliseconds?) async throws(UpstreamFailure) -> UpstreamHead { response }

  func collect(upTo limit: Int, within span: Milliseconds?) async throws(UpstreamFailure) -> Collected {
    if !failures.isEmpty { throw failures.removeFirst() }
    _ = permit?.take(now: .now)
    return .whole(body)
  }

  func whenReady(within span: Milliseconds, _ act: @escaping @Sendable () -> Void) { act() }

  var readyHead: UpstreamHead? { response }

  func read(within span: Milliseconds?) async throws(UpstreamFailure) -> ByteBuffer? { nil }

  func takeReady() -> (bytes: ByteBuffer, isEnd: Bool) { (body, true) }

  var sentAt: NIODeadline? { nil }

  var trailers: ByteBuffer { ByteBuffer() }

  func limitSilence(to span: Milliseconds) {}

  func tunnel(_ bytes: any RequestBodyStream) {}

  func close() {}
}
