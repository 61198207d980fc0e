import NIOCore
import Wire

/// The treatment of requests by pages of other origins (Fetch standard, CORS). It only adds to what the backend allows.
public struct CORSPolicy: Hashable, Sendable {
  /// The origins whose pages may read Semel's own responses, as browsers send them in `Origin`. Without any, Semel only
  /// completes the backend's responses.
  public var origins: [String]
  /// Whether these pages may do so with credentials, such as cookies.
  public var credentials: Bool

  public init(origins: [String] = [], credentials: Bool = false) {
    self.origins = origins
    self.credentials = credentials
  }
}

/// The fields of CORS in the response to one request on a route with `cors`.
///
/// Semel adds fields to a backend's response only if the backend lets a page read it. For its own responses, the
/// route's origins decide.
///
/// A class, so that a request without it holds an empty reference.
public final class CrossOrigin: Sendable {
  private let policy: CORSPolicy
  /// The request's origin, if the route lists it.
  private let origin: String?
  /// The fields that Semel takes from a request; `nil` unless the request is a preflight.
  private let takenFields: [String]?
  /// The announced fields on which the backend decides; `nil` unless the request is a preflight.
  public let announcedToBackend: [String]?

  /// - Parameter head: The head of a request that is no preflight.
  public convenience init(_ policy: CORSPolicy, head: MessageHead) {
    self.init(policy, head, takenFields: nil, announced: nil)
  }

  /// - Parameters:
  ///   - preflight: The request itself.
  ///   - announced: The policy of the route of the request that it announces.
  public convenience init(
    _ policy: CORSPolicy, preflight: Preflight, announced: RoutePolicy, head: MessageHead
  ) {
    let taken = announced.isProtected ? announced.takenFields : []
    self.init(
      policy, head, takenFields: taken, announced: preflight.fields.filter { !taken.contains($0) })
  }

  private init(
    _ policy: CORSPolicy, _ head: MessageHead, takenFields: [String]?, announced: [String]?
  ) {
    self.policy = policy
    self.takenFields = takenFields
    announcedToBackend = announced
    if !policy.origins.isEmpty, case .once(let range) = head.find("origin") {
      let origin = head.string(range)
      self.origin = policy.origins.contains(origin) ? origin : nil
    } else {
      origin = nil
    }
  }

  /// Writes what is added to a backend's response.
  public func writeAdditions(to head: MessageHead, into out: inout ByteBuffer) {
    guard head.names.contains(.accessControlAllowOrigin) else { return }
    guard let takenFields else { return writeExposed(into: &out) }
    guard !takenFields.isEmpty else { return }
    out.writeLiteral("Access-Control-Allow-Headers: ")
    out.writeString(takenFields.joined(separator: ", "))
    out.writeLiteral("\r\n")
  }

  /// Writes the permission to read a response of Semel's own: for pages of the listed origins, and for those that the
  /// backend has allowed to read everything that the response contains.
  ///
  /// - Parameter allowance: The backend's permission; `nil` if there is none.
  public func writeOwn(allowing allowance: OriginAllowance? = nil, into out: inout ByteBuffer) {
    let isAnyOrigin = allowance.map { $0.origin == "*" } ?? true
    if !policy.origins.isEmpty || !isAnyOrigin { out.writeLiteral("Vary: Origin\r\n") }
    let own = origin.map { OriginAllowance(origin: $0, withCredentials: policy.credentials) }
    guard let allowed = own ?? allowance else { return }
    allowed.write(into: &out)
    if takenFields == nil { writeExposed(into: &out) }
  }

  /// Writes the fields of a recorded response. If they allow one other origin, the request's takes its place if the
  /// route lists it, with credentials only if the recorded fields allowed them, too.
  public func write(recorded fields: ByteBuffer, into out: inout ByteBuffer) {
    let recorded = OriginAllowance(recorded: fields)
    if let origin, let recorded, recorded.origin != "*", recorded.origin != origin {
      out.writeImmutableBuffer(fields.fieldLines(without: .allowedOrigin))
      OriginAllowance(origin: origin, withCredentials: recorded.withCredentials && policy.credentials)
        .write(into: &out)
    } else {
      out.writeImmutableBuffer(fields)
    }
    guard let recorded else { return }
    if recorded.origin != "*", !policy.origins.isEmpty { out.writeLiteral("Vary: Origin\r\n") }
    writeExposed(into: &out)
  }

  private func writeExposed(into out: inout ByteBuffer) {
    out.writeLiteral(
      "Access-Control-Expose-Headers: Idempotency-Status, Idempotent-Replayed, Idempotency-Recorded-At, Idempotency-Expires, Retry-After, X-Should-Retry\r\n"
    )
  }
}

extension RoutePolicy {
  /// The fields that Semel takes from a request on the route besides those of the caller: of its key, and `Prefer`.
  fileprivate var takenFields: [String] {
    key.from.flatMap(\.parts).compactMap { source in
      if case .header(let name) = source { name } else { nil }
    } + ["prefer"]
  }
}

/// The permission by which a backend lets pages of other origins read a response.
public struct OriginAllowance: Sendable, Hashable {
  /// The value of `Access-Control-Allow-Origin`.
  let origin: String
  /// Whether pages may read it in requests with cookies.
  let withCredentials: Bool

  /// The permission in a backend's response; `nil` if there is none, or more than one.
  public init?(_ head: MessageHead) {
    guard head.names.contains(.accessControlAllowOrigin),
      case .once(let range) = head.find("access-control-allow-origin")
    else { return nil }
    origin = head.string(range)
    withCredentials = head.string(.accessControlAllowCredentials) == "true"
  }

  /// The permission in the field lines of a recorded response; `nil` if there is none, or more than one, or it is for
  /// no page that has an origin.
  public init?(recorded fields: ByteBuffer) {
    var origin: String?
    var count = 0
    var withCredentials = false
    fields.eachFieldLine { name, value in
      switch name {
      case "access-control-allow-origin":
        origin = value
        count += 1
      case "access-control-allow-credentials": withCredentials = value == "true"
      default: break
      }
    }
    guard let origin, count == 1, !origin.isEmpty, origin != "null", !origin.contains(",") else { return nil }
    self.origin = origin
    self.withCredentials = withCredentials
  }

  init(origin: String, withCredentials: Bool) {
    self.origin = origin
    self.withCredentials = withCredentials
  }

  /// Adds its fields to the head of a response.
  public func add(to head: inout MessageHead) {
    // A value that was a field's is one.
    try? head.append(name: "Access-Control-Allow-Origin", value: origin)
    if withCredentials { try? head.append(name: "Access-Control-Allow-Credentials", value: "true") }
  }

  /// Writes its field lines, each ended by CRLF.
  public func write(into out: inout ByteBuffer) {
    out.writeLiteral("Access-Control-Allow-Origin: ")
    out.writeString(origin)
    out.writeLiteral("\r\n")
    if withCredentials { out.writeLiteral("Access-Control-Allow-Credentials: true\r\n") }
  }
}
