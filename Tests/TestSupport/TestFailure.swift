/// The reason why a test cannot go on, as a sentence.
package struct TestFailure: Error, CustomStringConvertible, Sendable {
  package let description: String

  package init(_ description: String) {
    self.description = description
  }
}
