import Testing

@testable import Proxy

/// Sequences of events on one connection, and the action that follows each.
struct HTTP1ConnectionMachineTests {
  enum Event: Sendable {
    case head(hasBody: Bool), end
    case garbage(isHTTP2: Bool)
    case inputEnded
    case decoded(isWritable: Bool)
    case begin(isPersistent: Bool, isDelimitedByClose: Bool)
    case upgrade, queue
    case finish(hasUndecoded: Bool)
    case timeout(hasUndecoded: Bool)
    case drain(hasUndecoded: Bool)
    case close

    static let get = Event.head(hasBody: false)
    static let post = Event.head(hasBody: true)
    static let respond = Event.begin(isPersistent: true, isDelimitedByClose: false)
    static let finished = Event.finish(hasUndecoded: false)
  }

  struct Script: Sendable, CustomTestStringConvertible {
    let name: String
    /// Each event with the action that follows, as text.
    let steps: [(Event, String)]
    /// The part of a request that may be decoded in the end, and the condition for reading.
    let decoding: HTTP1ConnectionMachine.Decoding
    let reading: HTTP1ConnectionMachine.Reading

    var testDescription: String { name }
  }

  static let scripts: [Script] = [
    Script(
      name: "requests follow each other",
      steps: [
        (.get, ""), (.respond, "false"), (.finished, "awaitNext"),
        (.post, ""), (.end, ""), (.respond, "false"), (.finish(hasUndecoded: true), "decodeNext"),
      ], decoding: .head, reading: .whileRoom),
    Script(
      name: "a pipelined request waits for the response before it",
      steps: [(.get, ""), (.decoded(isWritable: true), "nothing")], decoding: .nothing, reading: .whileRoom),
    Script(
      name: "a body is decoded as it is wanted", steps: [(.post, "")], decoding: .body, reading: .whileRoom),
    Script(
      name: "the client or the proxy wants the connection to end",
      steps: [
        (.get, ""), (.begin(isPersistent: false, isDelimitedByClose: false), "true"), (.finished, "close"),
      ], decoding: .nothing, reading: .always),
    Script(
      name: "the last response, with a pipelined request behind it",
      steps: [
        (.get, ""), (.begin(isPersistent: false, isDelimitedByClose: false), "true"),
        (.finish(hasUndecoded: true), "linger"),
      ], decoding: .nothing, reading: .always),
    Script(
      name: "a response delimited by close",
      steps: [
        (.get, ""), (.begin(isPersistent: true, isDelimitedByClose: true), "false"), (.finished, "close"),
      ], decoding: .nothing, reading: .always),
    Script(
      name: "a response before the request's end is the last",
      steps: [(.post, ""), (.respond, "true"), (.finished, "linger")], decoding: .nothing, reading: .always),
    Script(
      name: "a response that begins before the request's end is the last",
      steps: [(.post, ""), (.respond, "true"), (.end, ""), (.finished, "close")],
      decoding: .nothing, reading: .always),
    Script(
      name: "the body goes on while its response has begun", steps: [(.post, ""), (.respond, "true")],
      decoding: .body, reading: .whileRoom),
    Script(
      name: "a response that waits for its client",
      steps: [(.get, ""), (.respond, "false"), (.queue, "queued"), (.finished, "awaitNext")],
      decoding: .head, reading: .whileRoom),
    Script(
      name: "an early response that waits for its client",
      steps: [(.post, ""), (.respond, "true"), (.queue, "queued"), (.end, ""), (.finished, "close")],
      decoding: .nothing, reading: .always),
  ]

  static let halfCloses: [Script] = [
    Script(
      name: "half-close before any request",
      steps: [(.inputEnded, "decode"), (.decoded(isWritable: true), "close")],
      decoding: .nothing, reading: .always),
    Script(
      name: "half-close behind a response that is not taken",
      steps: [(.inputEnded, "decode"), (.decoded(isWritable: false), "nothing")],
      decoding: .head, reading: .unchanged),
    Script(
      name: "half-close within a body",
      steps: [
        (.post, ""), (.inputEnded, "decode"), (.decoded(isWritable: true), "failBody"),
        (.decoded(isWritable: true), "nothing"), (.respond, "true"), (.finished, "linger"),
      ], decoding: .nothing, reading: .always),
    Script(
      name: "half-close with the rest of a body undecoded", steps: [(.post, ""), (.inputEnded, "decode")],
      decoding: .restOfBody, reading: .unchanged),
    Script(
      name: "half-close behind a whole body",
      steps: [
        (.post, ""), (.inputEnded, "decode"), (.end, ""), (.decoded(isWritable: true), "nothing"),
        (.respond, "false"), (.finished, "decodeNext"), (.decoded(isWritable: true), "close"),
      ], decoding: .nothing, reading: .always),
    Script(
      name: "half-close behind pipelined requests",
      steps: [
        (.get, ""), (.inputEnded, "decode"), (.respond, "false"), (.finish(hasUndecoded: true), "decodeNext"),
        (.get, ""), (.respond, "false"), (.finish(hasUndecoded: true), "decodeNext"),
        (.decoded(isWritable: true), "close"),
      ], decoding: .nothing, reading: .always),
    Script(
      name: "half-close after a response has begun within a body",
      steps: [
        (.post, ""), (.respond, "true"), (.inputEnded, "decode"), (.decoded(isWritable: true), "failBody"),
        (.finished, "linger"),
      ], decoding: .nothing, reading: .always),
    Script(
      name: "half-close while the response waits for its client",
      steps: [
        (.get, ""), (.respond, "false"), (.queue, "queued"), (.inputEnded, "decode"),
        (.decoded(isWritable: false), "nothing"), (.finished, "decodeNext"),
        (.decoded(isWritable: true), "close"),
      ], decoding: .nothing, reading: .always),
    Script(
      name: "half-close of a connection that closes",
      steps: [
        (.get, ""), (.begin(isPersistent: false, isDelimitedByClose: false), "true"), (.finished, "close"),
        (.inputEnded, "nothing"),
      ], decoding: .nothing, reading: .always),
    Script(
      name: "half-close of a tunnel",
      steps: [(.get, ""), (.upgrade, "false"), (.inputEnded, "endTunnelBody"), (.finished, "close")],
      decoding: .nothing, reading: .always),
    Script(
      name: "half-close before the switch to a tunnel",
      steps: [(.get, ""), (.inputEnded, "decode"), (.upgrade, "true")], decoding: .nothing,
      reading: .unchanged),
  ]

  static let ends: [Script] = [
    Script(
      name: "a tunnel that the backend ends",
      steps: [(.get, ""), (.upgrade, "false"), (.finished, "linger")], decoding: .nothing, reading: .always),
    Script(
      name: "a tunnel whose last bytes wait for the client",
      steps: [(.get, ""), (.upgrade, "false"), (.queue, "queued")], decoding: .nothing, reading: .whileTaken),
    Script(
      name: "a silent tunnel",
      steps: [(.get, ""), (.upgrade, "false"), (.timeout(hasUndecoded: false), "close")],
      decoding: .nothing, reading: .always),
    Script(
      name: "bytes of HTTP/2 at the beginning", steps: [(.garbage(isHTTP2: true), "becomeHTTP2")],
      decoding: .nothing, reading: .always),
    Script(
      name: "bytes of HTTP/2 behind a request",
      steps: [
        (.get, ""), (.respond, "false"), (.finish(hasUndecoded: true), "decodeNext"),
        (.garbage(isHTTP2: true), "refuse"),
      ], decoding: .nothing, reading: .always),
    Script(
      name: "bytes that are no request",
      steps: [(.garbage(isHTTP2: false), "refuse"), (.garbage(isHTTP2: false), "nothing")],
      decoding: .nothing, reading: .always),
    Script(
      name: "bytes that are no body",
      steps: [
        (.post, ""), (.garbage(isHTTP2: false), "failBody"), (.decoded(isWritable: true), "nothing"),
        (.respond, "true"), (.finished, "linger"),
      ], decoding: .nothing, reading: .always),
    Script(
      name: "bytes that are no body, then a half-close",
      steps: [
        (.post, ""), (.garbage(isHTTP2: false), "failBody"), (.inputEnded, "decode"),
        (.decoded(isWritable: true), "nothing"),
      ], decoding: .nothing, reading: .unchanged),
    Script(
      name: "a silent client", steps: [(.timeout(hasUndecoded: false), "close")], decoding: .nothing,
      reading: .always),
    Script(
      name: "a slow head", steps: [(.timeout(hasUndecoded: true), "refuse")], decoding: .nothing,
      reading: .always),
    Script(
      name: "a slow exchange", steps: [(.get, ""), (.timeout(hasUndecoded: true), "extend")],
      decoding: .nothing, reading: .whileRoom),
    Script(
      name: "draining an idle connection", steps: [(.drain(hasUndecoded: false), "true")], decoding: .nothing,
      reading: .always),
    Script(
      name: "draining within a head", steps: [(.drain(hasUndecoded: true), "false")], decoding: .head,
      reading: .whileRoom),
    Script(
      name: "draining within an exchange", steps: [(.get, ""), (.drain(hasUndecoded: false), "false")],
      decoding: .nothing, reading: .whileRoom),
    Script(
      name: "every event after the end",
      steps: [
        (.get, ""), (.close, ""), (.respond, "true"), (.queue, ""), (.finished, "nothing"), (.post, ""),
        (.end, ""),
        (.inputEnded, "nothing"), (.decoded(isWritable: true), "nothing"),
        (.garbage(isHTTP2: true), "nothing"),
        (.upgrade, "false"), (.timeout(hasUndecoded: false), "close"), (.drain(hasUndecoded: false), "false"),
      ], decoding: .nothing, reading: .always),
  ]

  @Test(arguments: scripts + halfCloses + ends)
  func `each event has its action`(script: Script) {
    var machine = HTTP1ConnectionMachine()
    for (index, (event, expected)) in script.steps.enumerated() {
      let action = Self.apply(event, to: &machine)
      #expect(action == expected, "step \(index): \(event)")
    }
    #expect(machine.decoding == script.decoding)
    #expect(machine.reading == script.reading)
  }

  @Test func `bytes are decoded, passed on or dropped`() {
    var machine = HTTP1ConnectionMachine()
    #expect(machine.bytesAction == .decode)
    machine.didDecodeHead(hasBody: true)
    #expect(machine.bytesAction == .decode)
    _ = machine.didFailDecoding(isHTTP2: false)
    #expect(machine.bytesAction == .drop)
    var tunnel = HTTP1ConnectionMachine()
    tunnel.didDecodeHead(hasBody: false)
    _ = tunnel.protocolsSwitch()
    #expect(tunnel.bytesAction == .passOn)
    _ = tunnel.responseEnded(hasUndecoded: false)
    #expect(tunnel.bytesAction == .drop)
  }

  @Test func `a last response lingers for bytes that the kernel holds, and asks for them only then`() {
    for (isPersistent, hasUnread, action) in [
      (false, true, "linger"), (false, false, "close"), (true, true, "awaitNext"),
    ] {
      var machine = HTTP1ConnectionMachine()
      machine.didDecodeHead(hasBody: false)
      _ = machine.responseBegins(isPersistent: isPersistent, isDelimitedByClose: false)
      var questions = 0
      let ended = machine.responseEnded(hasUndecoded: false) {
        questions += 1
        return hasUnread
      }
      #expect("\(ended)" == action)
      #expect(questions == (isPersistent ? 0 : 1))
    }
  }

  @Test func `the end of the client's side stays over all its requests`() {
    var machine = HTTP1ConnectionMachine()
    #expect(machine.hasInputEnded == false)
    machine.didDecodeHead(hasBody: false)
    #expect(machine.hasInputEnded == false)
    _ = machine.inputEnded()
    #expect(machine.hasInputEnded == true)
    _ = machine.responseBegins(isPersistent: true, isDelimitedByClose: false)
    _ = machine.responseEnded(hasUndecoded: true)
    #expect(machine.hasInputEnded == true)
    machine.didDecodeHead(hasBody: false)
    #expect(machine.hasInputEnded == true)
    _ = machine.protocolsSwitch()
    #expect(machine.hasInputEnded == true)
  }

  private static func apply(_ event: Event, to machine: inout HTTP1ConnectionMachine) -> String {
    switch event {
    case .head(let hasBody): machine.didDecodeHead(hasBody: hasBody)
    case .end: machine.didDecodeEnd()
    case .garbage(let isHTTP2): return "\(machine.didFailDecoding(isHTTP2: isHTTP2))"
    case .inputEnded: return "\(machine.inputEnded())"
    case .decoded(let isWritable): return "\(machine.didDecode(isWritable: isWritable))"
    case .begin(let isPersistent, let isDelimitedByClose):
      return "\(machine.responseBegins(isPersistent: isPersistent, isDelimitedByClose: isDelimitedByClose))"
    case .upgrade: return "\(machine.protocolsSwitch())"
    case .queue:
      machine.responseQueued()
      return machine.isResponseQueued ? "queued" : ""
    case .finish(let hasUndecoded): return "\(machine.responseEnded(hasUndecoded: hasUndecoded))"
    case .timeout(let hasUndecoded): return "\(machine.timedOut(hasUndecoded: hasUndecoded))"
    case .drain(let hasUndecoded): return "\(machine.drain(hasUndecoded: hasUndecoded))"
    case .close: machine.close()
    }
    return ""
  }
}
