/// Elements that enter and leave, each under a number of its own, which is never given twice.
///
/// Their order depends on what has entered and left alone. That of a dictionary by addresses would differ between two
/// equal runs of a simulation.
struct Roster<Element> {
  private var elements: [Int: Element] = [:]
  private var lastNumber = 0

  var isEmpty: Bool { elements.isEmpty }
  var count: Int { elements.count }
  var values: some Collection<Element> { elements.values }
  /// The elements with their numbers.
  var entries: some Collection<(key: Int, value: Element)> { elements }

  subscript(number: Int) -> Element? {
    get { elements[number] }
    _modify { yield &elements[number] }
  }

  /// Adds an element and returns its number.
  mutating func enter(_ element: Element) -> Int {
    lastNumber += 1
    elements[lastNumber] = element
    return lastNumber
  }

  /// Removes an element, if it has not left before.
  mutating func leave(_ number: Int) { elements[number] = nil }
}
