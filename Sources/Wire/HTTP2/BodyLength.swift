/// Checks the length of a body against its head's declaration in HTTP/2, whose frames mark the end themselves.
public struct BodyLength: Sendable {
  private var left: Int?

  public init(_ framing: BodyFraming) {
    switch framing {
    case .none: left = 0
    case .length(let length): left = length
    case .chunked: left = nil
    }
  }

  public init(answer framing: ResponseHead.Framing) {
    switch framing {
    case .none: left = 0
    case .length(let length): left = length
    case .chunked, .untilClose: left = nil
    }
  }

  public mutating func add(_ count: Int) throws(WireError) {
    guard let left else { return }
    guard count <= left else { throw .badContentLength }
    self.left = left - count
  }

  public func end() throws(WireError) {
    guard left == nil || left == 0 else { throw .badContentLength }
  }
}
