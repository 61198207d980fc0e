import Settings
import Testing

/// The page to which browsers are led from the policy.
struct PolicyPageTests {
  private static let rest = """
    upstreams: {backend: {url: "http://127.0.0.1:9000"}}
    routes: [{name: r, caller: {shared: true}}]

    """

  @Test(arguments: [
    "https://docs.example.com/problem-codes", "http://wiki/codes?page=1", "https://[::1]:8443",
  ])
  func `a URL is read as it is written`(url: String) throws {
    let settings = try load("policy_page: \"\(url)\"\n" + Self.rest)
    #expect(settings.policyPage == url && settings.warnings.isEmpty, "\(settings.warnings)")
  }

  @Test(arguments: [
    "/problem-codes", "https://", "ftp://h/a", "https://h/a#in_flight", "https://u:p@h/", "https://h/a b",
  ])
  func `what is no such URL is refused with the right form`(url: String) {
    let issues = issues("policy_page: \"\(url)\"\n" + Self.rest)
    #expect(
      issues == [
        "1:14: policy_page: must be an http or https URL without a fragment, such as "
          + "https://docs.example.com/problem-codes"
      ])
  }

  @Test func `a page beside a policy that is off is warned of`() throws {
    let text = "policy_page: https://h/\npolicy_document: off\n" + Self.rest
    #expect(try load(text).warnings.map(\.path) == ["policy_page"])
  }
}
