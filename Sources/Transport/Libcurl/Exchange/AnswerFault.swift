/// What is wrong with an answer, in a sentence: it is none then.
struct AnswerFault: Error, Equatable {
  var reason: String

  init(_ reason: String) { self.reason = reason }
}
