/// Holds the bytes of a body to the length that its head told, where the frames themselves tell the end.
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
