import Hummingbird

extension Request {
  /// The parameters of the query. One that is not known, or given twice, is refused: it would be left out silently, and
  /// the response be about more than was meant.
  func parameters(_ known: String...) throws(AdminError) -> [String: String] {
    var parameters: [String: String] = [:]
    for (name, value) in uri.queryParameters where !name.isEmpty {
      guard known.contains(String(name)) else {
        throw AdminError(
          .badRequest, "there is no parameter \(name); there are: \(known.joined(separator: ", "))")
      }
      guard parameters.updateValue(String(value), forKey: String(name)) == nil else {
        throw AdminError(.badRequest, "\(name) is given twice: give it once")
      }
    }
    return parameters
  }
}
