import Testing

@testable import Proxy

struct ResponseProgressTests {
  enum Event: Sendable { case takeContinue, hint, respond, begin, tunnel, end, cut }

  struct Script: Sendable, CustomTestStringConvertible {
    let name: String
    let events: [Event]
    let results: [Bool?]
    let timeLimit: ResponseProgress.BodyTimeLimit

    var testDescription: String { name }
  }

  static let scripts: [Script] = [
    Script(
      name: "a whole response", events: [.respond, .respond], results: [true, false], timeLimit: .upload),
    Script(
      name: "100 (Continue) is due once", events: [.takeContinue, .takeContinue], results: [true, false],
      timeLimit: .upload),
    Script(
      name: "no interim response follows a final one", events: [.begin, .takeContinue, .hint],
      results: [nil, false, false], timeLimit: .conversation),
    Script(
      name: "hints precede a response", events: [.hint, .respond, .hint], results: [true, true, false],
      timeLimit: .upload),
    Script(
      name: "a response that was begun is ended once", events: [.begin, .respond, .end, .end],
      results: [nil, false, true, false], timeLimit: .upload),
    Script(name: "an end needs a beginning", events: [.end], results: [false], timeLimit: .upload),
    Script(
      name: "a response that was cut has no end", events: [.begin, .cut, .end, .respond],
      results: [nil, nil, false, false], timeLimit: .upload),
    Script(name: "a tunnel may be silent", events: [.tunnel], results: [nil], timeLimit: .unlimited),
    Script(name: "a tunnel ends", events: [.tunnel, .end], results: [nil, true], timeLimit: .upload),
  ]

  @Test(arguments: scripts)
  func `each event has its result`(script: Script) {
    var progress = ResponseProgress(expectsContinue: true)
    var results: [Bool?] = []
    for event in script.events { results.append(Self.apply(event, to: &progress)) }
    #expect(results == script.results)
    let limit = progress.bodyTimeLimit
    #expect(limit == script.timeLimit)
  }

  @Test func `a client that sends its body unasked gets no 100`() {
    var progress = ResponseProgress(expectsContinue: true)
    let results = [progress.takeContinue(hasBody: true), progress.takeContinue(hasBody: false)]
    #expect(results == [false, false])
  }

  @Test func `hints are passed on while the client takes them, up to a limit`() {
    var progress = ResponseProgress(expectsContinue: false)
    let first = progress.takeHint(isWritable: false)
    #expect(!first)
    var count = 0
    while progress.takeHint(isWritable: true) { count += 1 }
    #expect(count == ResponseProgress.maxHints)
  }

  private static func apply(_ event: Event, to progress: inout ResponseProgress) -> Bool? {
    switch event {
    case .takeContinue: return progress.takeContinue(hasBody: false)
    case .hint: return progress.takeHint(isWritable: true)
    case .respond: return progress.respond()
    case .begin: progress.begin()
    case .tunnel: progress.becomeTunnel()
    case .end: return progress.end()
    case .cut: progress.cut()
    }
    return nil
  }
}
