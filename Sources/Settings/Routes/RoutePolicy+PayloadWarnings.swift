import Idempotency

extension RoutePolicy {
  /// The doubts about what counts as a payload: that a retry has another one, or that two operations have the same.
  var fingerprintWarnings: [String] {
    guard isProtected else { return [] }
    var warnings: [String] = []
    if let name = recipe.headers.first(where: Self.isOfOneDelivery) {
      warnings.append(Self.deliveryWarning(name, "fields"))
    }
    if let part = recipe.only.first(where: \.changesWithDelivery) {
      warnings.append(Self.deliveryWarning("\(part.text) in only", "parts"))
    }
    if let warning = bodyWarning { warnings.append(warning) }
    warnings += recipe.ignore.filter(\.namesOperation).map(Self.operationWarning)
    warnings += recipe.ignore.compactMap(\.arrayOfElements).map(Self.elementWarning)
    return warnings
  }

  private static func deliveryWarning(_ name: String, _ kind: String) -> String {
    "lists \(name), which is commonly different in each delivery: every retry is a payload_mismatch then; "
      + "list \(kind) alone that are part of the operation"
  }

  /// The reason why all bodies are one payload; `nil` if there is none. `body: none` says that it is meant.
  private var bodyWarning: String? {
    guard recipe.body == .auto, recipe.leavesOutBody,
      match.methods.isEmpty || !match.methods.allSatisfy(Self.bodilessMethods.contains)
    else { return nil }
    return
      "names nothing of the body in only (\(recipe.only.map(\.text).joined(separator: ", "))), so that no body counts: a "
      + "client that uses a key for a second operation gets the first one's response; name what makes the operation, such "
      + "as /amount or form:amount, or write body: none, too, if that is meant"
  }

  private static func operationWarning(_ part: PayloadPart) -> String {
    "leaves \(part.text) out, which commonly names the operation: a client that uses a key for a second operation gets "
      + "the first one's response then; leave out alone what differs in each delivery, such as query:timestamp"
  }

  private static func elementWarning(_ array: String) -> String {
    "leaves \(array)/* out, and elements of an array cannot be left out, only members of objects; write \(array) for the "
      + "whole array"
  }
}

extension PayloadPart {
  /// Whether the value commonly belongs to one delivery alone.
  fileprivate var changesWithDelivery: Bool {
    switch self {
    case .json(let pointer), .literal(let pointer): CallerPart.json(pointer).changesWithDelivery
    case .query(let name), .form(let name), .part(let name): CallerPart.query(name).changesWithDelivery
    case .fileNames: false
    }
  }

  /// Whether the value commonly says what is to be done, and not only with what.
  fileprivate var namesOperation: Bool {
    switch self {
    case .query(let name), .form(let name), .part(let name): Self.operationNames.contains(name.lowercased())
    case .json(let pointer), .literal(let pointer):
      Self.operationNames.contains(pointer.dropFirst().lowercased())
    case .fileNames: false
    }
  }

  /// Names of parameters by which frameworks, JSON-RPC and GraphQL choose an operation.
  private static let operationNames: Set<String> = [
    "_method", "action", "cmd", "command", "method", "mutation", "op", "operation", "operationname", "query",
    "variables",
  ]

  /// The pointer of an array whose elements the part names; `nil` for any other part.
  fileprivate var arrayOfElements: String? {
    guard case .json(let pointer) = self, pointer.hasSuffix("/*"), pointer != "/*" else { return nil }
    return String(pointer.dropLast(2))
  }
}
