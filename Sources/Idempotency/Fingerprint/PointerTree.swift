/// The pointers of a selection of JSON members, as a tree that is walked in parallel to the document: those that a
/// fingerprint leaves out, or those that it counts alone.
struct PointerTree: Sendable {
  /// A node of the tree. An optional place is `nil` if no pointer continues.
  typealias Place = Int

  private struct Edge {
    let segment: JSONPointer.Segment
    /// Whether the segment stands for all elements of an array.
    let isWildcard: Bool
    let target: Place
  }

  private struct Node {
    var edges: [Edge] = []
    /// Whether a pointer ends here.
    var isEnd = false
  }

  private var nodes: [Node] = [Node()]
  /// Whether what the pointers name counts alone, and is not left out.
  let selects: Bool

  /// Builds the tree of the parts that are in JSON. A text that is not a pointer is ignored, since the configuration has
  /// refused it before.
  init(_ parts: [PayloadPart], selects: Bool = false) {
    self.selects = selects
    for (pointer, hasWildcards) in parts.compactMap(\.pointer) {
      var place = 0
      for segment in pointer.segments {
        place = follow(segment, isWildcard: hasWildcards && segment.isStar, from: place)
      }
      nodes[place].isEnd = true
    }
  }

  /// The place of the document's root; `nil` if all of it counts.
  var root: Place? { nodes[0].edges.isEmpty ? nil : 0 }

  /// Whether a member counts.
  ///
  /// - Parameters:
  ///   - inner: The member's place.
  ///   - place: The place of its object; `nil` if all of that counts.
  func counts(_ inner: Place?, in place: Place?) -> Bool {
    guard place != nil else { return true }
    guard let inner else { return !selects }
    return selects || !nodes[inner].isEnd
  }

  /// The place from which on a counted value is walked; `nil` if all of it counts.
  func inside(_ place: Place?) -> Place? {
    guard selects, let place, nodes[place].isEnd else { return place }
    return nil
  }

  /// Whether any pointer names elements of an array at this place.
  func namesElements(of place: Place) -> Bool {
    nodes[place].edges.contains { $0.isWildcard || $0.segment.index != nil }
  }

  /// The place of the member whose name satisfies `matches`.
  func member(of place: Place, where matches: ([UInt8]) -> Bool) -> Place? {
    for edge in nodes[place].edges where matches(edge.segment.name) { return edge.target }
    return nil
  }

  /// The place of an array's element.
  func element(_ index: Int, of place: Place) -> Place? {
    for edge in nodes[place].edges where edge.isWildcard || edge.segment.index == index { return edge.target }
    return nil
  }

  private mutating func follow(
    _ segment: JSONPointer.Segment, isWildcard: Bool, from place: Place
  ) -> Place {
    for edge in nodes[place].edges where edge.segment == segment && edge.isWildcard == isWildcard {
      return edge.target
    }
    nodes.append(Node())
    nodes[place].edges.append(Edge(segment: segment, isWildcard: isWildcard, target: nodes.count - 1))
    return nodes.count - 1
  }
}
