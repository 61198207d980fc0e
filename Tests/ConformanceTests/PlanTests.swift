import Testing

@testable import Conformance

struct PlanTests {
  private func setup() -> Setup {
    Setup(
      endpoint: Endpoint("http://127.0.0.1/orders")!, payloads: Payloads(Array(#"{"item":"book"}"#.utf8)))
  }

  @Test func `the cases have names of their own`() {
    #expect(Set(Catalogue.cases.map(\.id)).count == Catalogue.cases.count)
    for section in Section.allCases {
      #expect(Catalogue.cases.contains { $0.section == section }, "\(section)")
    }
  }

  @Test func `a case without its oracle is inconclusive, and sends nothing`() {
    let plan = Plan(setup(), .init(only: ["2.6/retry-runs-once", "2.6/concurrent-32"]))
    #expect(plan.entries.map(\.leftOut?.kind) == [.inconclusive, .inconclusive])
    #expect(plan.requests == 1)
  }

  @Test func `a case without another part of the setup is skipped with the reason`() {
    let plan = Plan(setup(), .init(only: ["5/other-caller-sees-nothing", "2.7/in-flight-409"]))
    #expect(
      plan.entries.map(\.leftOut) == [
        Verdict(.skip, "needs --slow-request"), Verdict(.skip, "needs --other-caller"),
      ])
  }

  @Test func `equal scripts run once`() {
    let plan = Plan(
      setup(), .init(only: ["2.7/reuse-status", "2.7/reuse-described", "2.7/reuse-refused-again"]))
    #expect(plan.scripts.count == 2)
    #expect(plan.requests == 5)
  }

  @Test func `cases are selected by section, name and level`() {
    #expect(Plan(setup(), .init(only: ["2.2"])).entries.allSatisfy { $0.examined.section == .uniqueness })
    #expect(Plan(setup(), .init(only: ["2.6/marker"])).entries.map(\.examined.id) == ["2.6/marker"])
    #expect(Plan(setup(), .init(level: .must)).entries.allSatisfy { $0.examined.level == .must })
    #expect(Plan(setup()).entries.count == Catalogue.cases.count)
    #expect(Plan.Selection(only: ["2.6", "2.6/markers"]).unknown == "2.6/markers")
    #expect(Plan.Selection(only: ["beyond", "2.6/marker"]).unknown == nil)
  }

  @Test func `the announcement names the requests, the target and what they create`() {
    var setup = setup()
    setup.oracle = .count(setup.endpoint, pointer: "")
    let plan = Plan(setup, .init(only: ["2.6/retry-runs-once"]))
    #expect(
      plan.announcement(of: setup)
        == "1 case: 4 requests to http://127.0.0.1/orders, and 5 to the oracle of executions; "
        + "up to 4 of them may create something")
  }

  @Test func `a payload that is no JSON object has no other spelling`() {
    let setup = Setup(endpoint: setup().endpoint, payloads: Payloads(Array("a=1".utf8)))
    let plan = Plan(setup, .init(only: ["2.4/member-order"]))
    #expect(plan.entries.map(\.leftOut?.kind) == [.skip])
  }
}
