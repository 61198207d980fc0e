import NIOCore
import Wire

/// The paths at which Semel itself responds to GET and HEAD, before any route is looked for.
public enum ReservedPath: Sendable {
  /// The policy that routes publish.
  case policy
  /// The outcome of a request that was sent before.
  case outcome

  /// The reserved path of a request; `nil` for any other request. Paths are compared in their normalised form.
  public init?(_ head: MessageHead, path: ByteBuffer) {
    guard head.method == .get || head.method == .head else { return nil }
    let policy = Problem.documentPath.utf8
    // Nearly every path has another length.
    if path.readableBytes == policy.count {
      guard path.readableBytesView.elementsEqual(policy) else { return nil }
      self = .policy
    } else if path.readableBytes == OutcomeInquiry.path.utf8.count {
      guard path.readableBytesView.elementsEqual(OutcomeInquiry.path.utf8) else { return nil }
      self = .outcome
    } else {
      return nil
    }
  }
}

/// A response that Semel makes itself and that is no refusal.
public struct OwnResponse: Sendable {
  public var status: Int
  /// The fields besides the date and those that frame the body.
  public var fields: [(name: StaticString, value: String)]
  public var body: ByteBuffer
  /// The permission of the backend whose results it contains; `nil` if there is none.
  public var allowance: OriginAllowance?

  public init(
    status: Int, fields: [(name: StaticString, value: String)], body: ByteBuffer = ByteBuffer(),
    allowance: OriginAllowance? = nil
  ) {
    self.status = status
    self.fields = fields
    self.body = body
    self.allowance = allowance
  }
}
