/// Why a text is not what a member wants: the end of a sentence that begins with the member's path.
struct Refusal: Error, Hashable {
  var message: String

  init(_ message: String) { self.message = message }
}
