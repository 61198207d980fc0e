/// Checks the length of a body against its head's declaration in HTTP/2, whose frames mark the end themselves.
public struct BodyLength: Sendable {
  /// The number of bytes that are still to come; `nil` if no length was declared.
  private var left: Int?

  public init(_ framing: BodyFraming) {
    switch framing {
    case .none: left = 0
    case .length(let length): left = length
    case .chunked: left = nil
    }
  }

  public init(response framing: ResponseHead.Framing) {
    switch framing {
    case .none: left = 0
    case .length(let length): left = length
    case .chunked, .untilClose: left = nil
    }
  }

  /// Counts bytes of the body. Throws `badContentLength` if they exceed the declared length.
  public mutating func add(_ count: Int) throws(WireError) {
    guard let left else { return }
    guard count <= left else { throw .badContentLength }
    self.left = left - count
  }

  /// Ends the body. Throws `badContentLength` if it is shorter than declared.
  public func end() throws(WireError) {
    guard left == nil || left == 0 else { throw .badContentLength }
  }
}
