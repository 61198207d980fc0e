import NIOCore
import Wire

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
