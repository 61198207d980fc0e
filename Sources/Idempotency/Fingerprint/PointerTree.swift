/// The pointers of the members that stay out of a fingerprint, as a tree that is walked beside the document.
struct PointerTree: Sendable {
  /// A place in the tree; `nil` where no pointer leads on.
  typealias Place = Int

  private struct Edge {
    let segment: JSONPointer.Segment
    let target: Place
  }

  private struct Node {
    var edges: [Edge] = []
    /// Whether a pointer ends here: the member stays out.
    var isEnd = false
  }

  private var nodes: [Node] = [Node()]

  /// A text that is no pointer leads nowhere; the configuration refuses it before.
  init(_ pointers: [String]) {
    for pointer in pointers.compactMap(JSONPointer.init) {
      var place = 0
      for segment in pointer.segments { place = follow(segment, from: place) }
      nodes[place].isEnd = true
    }
  }

  /// Where the document's root stands; `nil` where nothing stays out.
  var root: Place? { nodes[0].edges.isEmpty ? nil : 0 }

  /// Whether the member at this place stays out.
  func isEnd(_ place: Place) -> Bool { nodes[place].isEnd }

  /// Where the member stands whose name `matches` knows.
  func member(of place: Place, where matches: ([UInt8]) -> Bool) -> Place? {
    for edge in nodes[place].edges where matches(edge.segment.name) { return edge.target }
    return nil
  }

  /// Where an array's element stands.
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
