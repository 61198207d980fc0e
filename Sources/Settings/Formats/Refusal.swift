/// The reason why a text is not valid for a member, as the end of a sentence that begins with the member's path.
struct Refusal: Error, Hashable {
  var message: String

  init(_ message: String) { self.message = message }
}
