import Idempotency
import Testing

/// The date of the first delivery, by the profile `repeatability`.
struct FirstSentTests {
  /// Sun, 06 Nov 1994 08:49:37 GMT.
  private static let sent = 784_111_777

  private static func refusal(
    _ fields: [(String, String)], after seconds: Int = 1, _ profile: RouteProfile = .repeatability
  ) throws -> Problem? {
    let route = Route.sample {
      $0.adopt(profile)
      $0.remember = .seconds(3600)
    }
    var request = Request()
    request.fields = fields
    let head = request.head
    do throws(Problem) {
      let finding = try route.policy.key.keyBeforeBody(head: head, query: nil)
      try route.refuseUnrepeatable(head, finding, now: { sent + seconds })
      return nil
    } catch {
      return error
    }
  }

  private static let id = ("Repeatability-Request-ID", "7f7cf1a2-5d6a-4f0e-9d2b-0a2b6a1f3c11")
  private static let date = ("Repeatability-First-Sent", "Sun, 06 Nov 1994 08:49:37 GMT")

  @Test func `a request needs both fields, or none`() throws {
    #expect(try Self.refusal([]) == nil)
    #expect(try Self.refusal([Self.id, Self.date]) == nil)
    #expect(try Self.refusal([Self.id])?.code == .keyInvalid)
    #expect(try Self.refusal([Self.date])?.code == .keyMissing)
    #expect(try Self.refusal([Self.id, Self.date, Self.date])?.code == .keyInvalid)
    #expect(try Self.refusal([Self.id], .stripe) == nil)
  }

  @Test(arguments: ["", "now", "1994-11-06T08:49:37Z", "Mon, 06 Nov 1994 08:49:37 GMT"])
  func `what is no date is refused`(value: String) throws {
    let problem = try #require(try Self.refusal([Self.id, ("Repeatability-First-Sent", value)]))
    #expect(problem.code == .keyInvalid && problem.status == 400)
  }

  @Test(arguments: [(-100_000, true), (3600, true), (3601, false), (1 << 40, false)])
  func `what was first sent before all that is remembered is refused`(age: Int, isAccepted: Bool) throws {
    let problem = try Self.refusal([Self.id, Self.date], after: age)
    #expect(problem?.status == (isAccepted ? nil : 412))
    #expect(problem?.code == (isAccepted ? nil : .keyExpired))
  }
}
