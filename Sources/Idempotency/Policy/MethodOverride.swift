import NIOCore
import Wire

/// The method by which a request asks a backend to run it instead of the written one: in fields, or in the parameter
/// `_method` of its query or its form.
enum MethodOverride: Equatable {
  /// The request names no method but the written one.
  case absent
  /// The request names this method, in capitals, once in each place.
  case one(String)
  /// The request names several methods, one of them twice, or what is too long for a method.
  case unclear

  /// Reads the fields up to the first value that decides, and two parameters at most.
  init(_ head: MessageHead, query: ByteBuffer?, form: MethodParameter.Form) {
    let fields = head.names.intersection(.methodOverrides).rawValue.nonzeroBitCount
    var found: String?
    var count = 0
    let isClear = head.readList(of: .methodOverrides) { value in
      count += 1
      guard count <= fields, value.count <= HeadLimits.methodBytes else { return false }
      let method = String(decoding: value, as: UTF8.self).uppercased()
      guard found == nil || found == method else { return false }
      found = method
      return true
    }
    let parameters = MethodParameter.values(inQuery: query) + form.values
    let method = found ?? parameters.first
    if !isClear || parameters.count > 1 || parameters.first ?? method != method {
      self = .unclear
    } else if let method, method != head.string(head.methodRange) {
      self = .one(method)
    } else {
      self = .absent
    }
  }
}

extension RouteTable {
  /// The protected route of the method that a request names instead of the written one, with that method; `nil` if the
  /// written one counts.
  ///
  /// A backend either honours such a field and runs the method that it names, or ignores it and runs the written one,
  /// and Semel cannot know which. On a protected path the request is therefore refused, unless each protected route of
  /// the two methods says that its backend honours the field. A request that would leave protection by it is refused,
  /// too. A shadowed route refuses nothing, and observes the written method.
  ///
  /// - Parameters:
  ///   - own: The route of the written method.
  ///   - host: The host without its port.
  ///   - path: The normalised path.
  func overriding(
    _ own: Route?, _ override: MethodOverride, for head: MessageHead, host: ByteBuffer, path: ByteBuffer,
    _ operation: GraphQLOperation
  ) throws(Problem) -> (route: Route, method: ByteBuffer)? {
    switch override {
    case .absent: return nil
    case .unclear:
      // Only the first values are read, and any may be the one that the backend takes.
      guard !isProtected(head, host, path) else { throw .badRequest(.methodOverride) }
      return nil
    case .one(let name):
      let method = ByteBuffer(string: name)
      let other = route(for: head, method: method, host: host, path: path, operation: operation)
      let protecting = [own, other].compactMap { $0 }.filter(\.isEnforced)
      guard !protecting.isEmpty else { return nil }
      guard let other, other.isEnforced, protecting.allSatisfy(\.policy.methodOverride) else {
        throw .badRequest(.methodOverride)
      }
      return (other, method)
    }
  }
}
