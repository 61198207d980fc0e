import NIOCore
import Wire

/// A batch's request, split into its items.
public struct BatchRequest: Sendable {
  public struct Item: Sendable {
    /// The item's JSON.
    public let text: ByteBuffer
    public let key: IdempotencyKey
  }

  private let array: JSONArrayText
  private let whole: ByteBuffer
  public let items: [Item]

  /// Splits a body by a route's policy. Throws if it is no JSON with an array of items in its place, or if an item has
  /// no key, or one against the route's rules.
  public init(
    _ body: ByteBuffer, head: MessageHead, policy: BatchPolicy, keys: KeyPolicy
  ) throws(Problem) {
    guard !head.hasContentCoding,
      let array = JSONArrayText(body, at: policy.items, maxElements: policy.maxItems), !array.elements.isEmpty
    else { throw .badRequest(.batch) }
    guard array.elements.count <= policy.maxItems else { throw .badRequest(.batchSize) }
    self.array = array
    whole = body
    var items: [Item] = []
    var unkeyed: [Int] = []
    for (index, text) in array.elements.enumerated() {
      guard let key = try keys.key(ofItem: index, text, at: policy.key) else {
        unkeyed.append(index)
        continue
      }
      items.append(Item(text: text, key: key))
    }
    guard unkeyed.isEmpty else { throw .keyMissing(inItems: unkeyed, at: policy.key) }
    self.items = items
  }

  /// The size of the body, in bytes.
  public var size: Int { whole.readableBytes }

  /// The request's body with these items alone, in the request's order.
  public func body(of indices: [Int]) -> ByteBuffer {
    invariant(indices.count <= items.count, "more items are sent than a batch has")
    invariant(!indices.isEmpty, "a batch is sent without items")
    return indices.count == items.count ? whole : array.text(with: indices.map { items[$0].text })
  }

  /// The fingerprint of each of these items, made from the text around the items and from the item alone, so that an
  /// item has the same fingerprint in every batch. The recipe's pointers apply to either part from its root.
  public func fingerprints(
    of indices: [Int], by recipe: Recipe, head: MessageHead, method: ByteBuffer, target: RequestTarget
  ) -> [Fingerprint] {
    func digest(of body: ByteBuffer, query: ByteBuffer?) -> Digest256 {
      Fingerprint.make(
        recipe: recipe, head: head, method: method, path: target.path, query: query, body: body
      ).digest
    }
    let around = digest(of: array.text(with: []), query: target.query)
    return indices.map { index in
      let item = digest(of: items[index].text, query: nil)
      return Fingerprint(
        recipe: recipe,
        digest: FramedHash.digest { hash in
          for index in 0..<32 { hash.byte(around[index]) }
          for index in 0..<32 { hash.byte(item[index]) }
        })
    }
  }
}

/// A backend's response to a batch, split into the results of its items.
public struct BatchResults: Sendable {
  private let array: JSONArrayText
  /// The result of each item that was sent, in the order in which they were sent.
  public let results: [ByteBuffer]

  /// Splits a body; `nil` if it is not certain which result is which item's.
  ///
  /// Results that repeat their items' keys are matched by these, in whatever order they stand. Results without keys are
  /// taken in the order of the items. Results of which some have a key that does not fit prove nothing.
  public init?(_ body: ByteBuffer, keys: [IdempotencyKey], policy: BatchPolicy) {
    guard let array = JSONArrayText(body, at: policy.results, maxElements: keys.count),
      array.elements.count == keys.count
    else { return nil }
    self.array = array
    let named = array.elements.map { ResultKey(of: $0, at: policy.key) }
    guard named.contains(where: { $0 != .absent }) else {
      results = array.elements
      return
    }
    var places: [IdempotencyKey: Int] = [:]
    for case (let index, .key(let key)) in named.enumerated() { places[key] = index }
    let ordered = keys.compactMap { key in places[key].map { array.elements[$0] } }
    guard places.count == keys.count, ordered.count == keys.count else { return nil }
    results = ordered
  }

  /// The backend's response with the results of all items of the client's batch.
  public func body(with results: [ByteBuffer]) -> ByteBuffer { array.text(with: results) }
}

/// The value in the place of a result's key.
private enum ResultKey: Equatable {
  case absent
  case key(IdempotencyKey)
  /// A value that no item's key can be.
  case unfit

  init(of result: ByteBuffer, at pointer: String) {
    self = result.withUnsafeReadableBytes { bytes in
      guard let pointer = JSONPointer(pointer), let document = try? JSONParser.parse(bytes) else {
        return .unfit
      }
      let key: [UInt8]
      switch document.find(pointer) {
      case .absent: return .absent
      case .string(let content): key = Array(IteratorSequence(JSONText(content)))
      case .integer(let digits): key = Array(digits)
      case .ambiguous, .decimal, .other: return .unfit
      }
      return key.isEmpty ? .unfit : .key(IdempotencyKey(checked: key))
    }
  }
}

extension KeyPolicy {
  /// The key of an item; `nil` if it has none. Throws if it has one against the route's rules.
  fileprivate func key(
    ofItem index: Int, _ item: ByteBuffer, at pointer: String
  ) throws(Problem) -> IdempotencyKey? {
    let reading = item.withUnsafeReadableBytes { KeySource.readJSON(pointer, in: $0) ?? .none }
    return try value(of: reading, inItem: index).map(IdempotencyKey.init(checked:))
  }
}
