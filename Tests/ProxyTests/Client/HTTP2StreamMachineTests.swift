import Testing
import Wire

@testable import Proxy

/// Sequences of events on one stream, and the action that follows each.
struct HTTP2StreamMachineTests {
  enum Event: Sendable {
    case head(BodyFraming, isEnd: Bool)
    case refusedHead(isMalformed: Bool, isEnd: Bool)
    case data(Int, isEnd: Bool)
    case trailers(isEnd: Bool)
    case badTrailers, inputClosed, complete, written, close

    static let get = Event.head(.none, isEnd: true)
    static let post = Event.head(.chunked, isEnd: false)
  }

  struct Script: Sendable, CustomTestStringConvertible {
    let name: String
    /// Each event with the action that follows, as text.
    let steps: [(Event, String)]
    let isOpen: Bool
    let isMalformed: Bool

    init(_ name: String, isOpen: Bool = true, isMalformed: Bool = false, _ steps: [(Event, String)]) {
      self.name = name
      self.steps = steps
      self.isOpen = isOpen
      self.isMalformed = isMalformed
    }

    var testDescription: String { name }
  }

  static let scripts: [Script] = [
    Script("a request without a body", [(.get, ""), (.complete, ""), (.written, "nothing")]),
    Script(
      "a request with a body",
      [
        (.post, ""), (.data(3, isEnd: false), "deliver"), (.data(0, isEnd: true), "deliver"), (.complete, ""),
        (.written, "nothing"),
      ]),
    Script(
      "a request with trailers",
      [(.post, ""), (.data(3, isEnd: false), "deliver"), (.trailers(isEnd: true), "deliver")]),
    Script("nothing is reset before the response is complete", [(.post, ""), (.written, "nothing")]),
    Script(
      "a response before the request's end stops the upload", isOpen: false,
      [(.post, ""), (.complete, ""), (.data(3, isEnd: false), "drop"), (.written, "stopUpload")]),
    Script(
      "an upload that ends before its early response has left is not stopped",
      [(.post, ""), (.complete, ""), (.data(3, isEnd: true), "drop"), (.written, "nothing")]),
    Script(
      "a body longer than declared", isOpen: false,
      [
        (.head(.length(2), isEnd: false), ""), (.data(3, isEnd: false), "fail"),
        (.data(1, isEnd: true), "drop"),
        (.complete, ""), (.written, "resetMalformed"),
      ]),
    Script(
      "a body shorter than declared", isMalformed: true,
      [(.head(.length(2), isEnd: false), ""), (.data(1, isEnd: true), "fail")]),
    Script(
      "trailers before the declared end", isMalformed: true,
      [(.head(.length(2), isEnd: false), ""), (.trailers(isEnd: true), "fail")]),
    Script(
      "fields amid the body", isMalformed: true, [(.post, ""), (.trailers(isEnd: false), "fail")]),
    Script(
      "invalid trailers", isOpen: false,
      [
        (.post, ""), (.trailers(isEnd: true), "deliver"), (.badTrailers, ""), (.complete, ""),
        (.written, "resetMalformed"),
      ]),
    Script(
      "a length is not checked once the response is complete",
      [(.head(.length(2), isEnd: false), ""), (.complete, ""), (.data(3, isEnd: true), "drop")]),
    Script(
      "a malformed head", isOpen: false,
      [
        (.refusedHead(isMalformed: true, isEnd: true), ""), (.complete, ""), (.data(1, isEnd: false), "drop"),
        (.written, "resetMalformed"),
      ]),
    Script(
      "a head too large, with a body", isOpen: false,
      [(.refusedHead(isMalformed: false, isEnd: false), ""), (.complete, ""), (.written, "stopUpload")]),
    Script(
      "a head too large, without a body",
      [(.refusedHead(isMalformed: false, isEnd: true), ""), (.complete, ""), (.written, "nothing")]),
    Script("half-close before the head", [(.inputClosed, "false")]),
    Script("half-close behind a whole request", [(.get, ""), (.inputClosed, "false")]),
    Script(
      "half-close within a body", isOpen: false,
      [
        (.post, ""), (.inputClosed, "true"), (.inputClosed, "false"), (.complete, ""),
        (.written, "stopUpload"),
      ]),
    Script(
      "half-close within a body whose response is complete", isOpen: false,
      [(.post, ""), (.complete, ""), (.inputClosed, "false"), (.written, "stopUpload")]),
    Script(
      "half-close of a malformed request", isMalformed: true,
      [(.head(.length(2), isEnd: false), ""), (.data(3, isEnd: false), "fail"), (.inputClosed, "false")]),
    Script(
      "every event after a reset", isOpen: false,
      [
        (.post, ""), (.close, ""), (.get, ""), (.refusedHead(isMalformed: true, isEnd: true), ""),
        (.data(1, isEnd: true), "drop"), (.trailers(isEnd: true), "drop"), (.badTrailers, ""),
        (.inputClosed, "false"), (.complete, ""), (.written, "nothing"),
      ]),
    Script(
      "frames before any head", [(.data(1, isEnd: false), "drop"), (.badTrailers, ""), (.written, "nothing")]),
  ]

  @Test(arguments: scripts)
  func `each event has its action`(script: Script) {
    var machine = HTTP2StreamMachine()
    for (index, (event, expected)) in script.steps.enumerated() {
      let action = Self.apply(event, to: &machine)
      #expect(action == expected, "step \(index): \(event)")
    }
    let (isOpen, isMalformed) = (machine.isOpen, machine.isMalformed)
    #expect(isOpen == script.isOpen)
    #expect(isMalformed == script.isMalformed)
  }

  @Test func `fields hold a head, then trailers`() {
    var machine = HTTP2StreamMachine()
    var states = [machine.awaitsHead]
    machine.didAcceptHead(.chunked, isEnd: false)
    states.append(machine.awaitsHead)
    machine.close()
    states.append(machine.awaitsHead)
    #expect(states == [true, false, false])
  }

  @Test func `a response is complete once, also by a reset`() {
    var machine = HTTP2StreamMachine()
    machine.didAcceptHead(.chunked, isEnd: false)
    var states = [machine.isResponseComplete]
    machine.responseCompleted()
    states.append(machine.isResponseComplete)
    var other = HTTP2StreamMachine()
    other.close()
    states.append(other.isResponseComplete)
    #expect(states == [false, true, true])
  }

  private static func apply(_ event: Event, to machine: inout HTTP2StreamMachine) -> String {
    switch event {
    case .head(let framing, let isEnd): machine.didAcceptHead(framing, isEnd: isEnd)
    case .refusedHead(let isMalformed, let isEnd):
      machine.didRefuseHead(isMalformed: isMalformed, isEnd: isEnd)
    case .data(let count, let isEnd): return text(machine.didReceiveData(count, isEnd: isEnd))
    case .trailers(let isEnd): return text(machine.didReceiveTrailers(isEnd: isEnd))
    case .badTrailers: machine.didRefuseTrailers()
    case .inputClosed: return "\(machine.inputClosed())"
    case .complete: machine.responseCompleted()
    case .written: return "\(machine.didWriteAll())"
    case .close: machine.close()
    }
    return ""
  }

  private static func text(_ action: HTTP2StreamMachine.FrameAction) -> String {
    switch action {
    case .deliver: "deliver"
    case .fail: "fail"
    case .drop: "drop"
    }
  }
}
