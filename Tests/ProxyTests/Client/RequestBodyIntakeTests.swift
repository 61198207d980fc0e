import Idempotency
import NIOCore
import Testing

@testable import Proxy

struct RequestBodyIntakeTests {
  private static func text(_ action: RequestBodyIntake.NextAction) -> String {
    switch action {
    case .wait: "wait"
    case .use(let bytes): String(buffer: bytes)
    case .end: "end"
    case .fail(let problem): "\(problem.status)"
    }
  }

  private static func text(_ action: RequestBodyIntake.CollectAction) -> String {
    switch action {
    case .wait: "wait"
    case .use(let bytes): String(buffer: bytes)
    case .refuse(let problem): "\(problem.status)"
    }
  }

  @Test func `a body is taken in pieces, up to its end`() {
    var intake = RequestBodyIntake(isWhole: false)
    var actions = [Self.text(intake.takeNext())]
    intake.append(ByteBuffer(string: "ab"))
    intake.append(ByteBuffer(string: "c"))
    actions.append(Self.text(intake.takeNext()))
    actions.append(Self.text(intake.takeNext()))
    intake.finish()
    actions.append(Self.text(intake.takeNext()))
    #expect(actions == ["wait", "abc", "wait", "end"])
  }

  @Test func `a body is collected, up to a limit`() {
    var intake = RequestBodyIntake(isWhole: false)
    intake.beginCollecting(limit: 3)
    intake.append(ByteBuffer(string: "abc"))
    var actions = [Self.text(intake.collected(limit: 3))]
    var wantsMore = [intake.wantsMore]
    intake.append(ByteBuffer(string: "d"))
    wantsMore.append(intake.wantsMore)
    actions.append(Self.text(intake.collected(limit: 3)))
    intake.finish()
    actions.append(Self.text(intake.collected(limit: 4)))
    #expect(actions == ["wait", "413", "abcd"])
    #expect(wantsMore == [true, false])
  }

  @Test func `a body that failed never becomes whole, and the first reason stands`() {
    var intake = RequestBodyIntake(isWhole: false)
    intake.append(ByteBuffer(string: "a"))
    intake.fail(.overloaded(.busy))
    intake.append(ByteBuffer(string: "c"))
    intake.finish()
    intake.fail(.badRequest(.malformed))
    #expect(Self.text(intake.collected(limit: 9)) == "503")
    let whole = intake.whole
    #expect(whole == nil)
    let actions = [Self.text(intake.takeNext()), Self.text(intake.takeNext())]
    #expect(actions == ["a", "503"])
  }

  @Test func `a whole body stays whole when its client goes away`() {
    var intake = RequestBodyIntake(isWhole: true)
    intake.fail(.badRequest(.malformed))
    let isWhole = intake.isWhole
    #expect(isWhole)
  }

  @Test func `the bytes of a tunnel are a body without end`() {
    var intake = RequestBodyIntake(isWhole: true)
    intake.becomeTunnel()
    var actions = [Self.text(intake.takeNext())]
    intake.append(ByteBuffer(string: "a"))
    actions.append(Self.text(intake.takeNext()))
    intake.finish()
    actions.append(Self.text(intake.takeNext()))
    #expect(actions == ["wait", "a", "end"])
  }
}
