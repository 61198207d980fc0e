import Wire

/// The method by which fields ask a backend to run a request instead of the written one.
enum MethodOverride: Equatable {
  /// The fields name no method.
  case absent
  /// The fields name this method, in capitals, each of them once.
  case one(String)
  /// The fields name several methods, one of them twice, or what is too long for a method.
  case unclear

  /// Reads the fields up to the first value that decides.
  init(_ head: MessageHead) {
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
    self = isClear ? found.map(MethodOverride.one) ?? .absent : .unclear
  }
}
