/// The pointers of the members that a fingerprint leaves out, as a tree that is walked in parallel to the document.
struct PointerTree: Sendable {
  /// A node of the tree. An optional place is `nil` if no pointer continues.
  typealias Place = Int

  private struct Edge {
    let segment: JSONPointer.Segment
    let target: Place
  }

  private struct Node {
    var edges: [Edge] = []
    /// Whether a pointer ends here, so that the member is left out.
    var isEnd = false
  }

  private var nodes: [Node] = [Node()]

  /// Builds the tree. A text that is not a pointer is ignored, since the configuration has refused it before.
  init(_ pointers: [String]) {
    for pointer in pointers.compactMap(JSONPointer.init(_:)) {
      var place = 0
      for segment in pointer.segments { place = follow(segment, from: place) }
      nodes[place].isEnd = true
    }
  }

  /// The place of the document's root; `nil` if nothing is left out.
  var root: Place? { nodes[0].edges.isEmpty ? nil : 0 }

  /// Whether the member at this place is left out.
  func isEnd(_ place: Place) -> Bool { nodes[place].isEnd }

  /// The place of the member whose name satisfies `matches`.
  func member(of place: Place, where matches: ([UInt8]) -> Bool) -> Place? {
    for edge in nodes[place].edges where matches(edge.segment.name) { return edge.target }
    return nil
  }

  /// The place of an array's element.
  func element(_ index: Int, of place: Place) -> Place? {
    for edge in nodes[place].edges where edge.segment.index == index { return edge.target }
    return nil
  }

  private mutating func follow(_ segment: JSONPointer.Segment, from place: Place) -> Place {
    for edge in nodes[place].edges where edge.segment == segment { return edge.target }
    nodes.append(Node())
    nodes[place].edges.append(Edge(segment: segment, target: nodes.count - 1))
    return nodes.count - 1
  }
}
