import NIOCore
import Testing
import Wire

struct KeepAliveTermsTests {
  @Test(arguments: [
    ("", nil, nil), ("Keep-Alive: timeout=5\r\n", 5, nil), ("keep-alive: max=100, timeout=5\r\n", 5, 100),
    ("Keep-Alive: TimeOut = 5 ,Max=0\r\n", 5, 0),
    ("Keep-Alive: timeout=9, timeout=4\r\nKeep-Alive: max=3\r\nKeep-Alive: max=7\r\n", 4, 3),
    // No terms, or none that can be read.
    ("Keep-Alive: 300\r\n", nil, nil), ("Keep-Alive: timeout=, max=-1, max=+2, =3\r\n", nil, nil),
    ("Keep-Alive: timeout=99999999999999999999, timeouts=1, max=1.5\r\n", nil, nil),
  ])
  func `the terms of a connection are read`(_ lines: String, timeout: Int?, max: Int?) throws {
    var decoder = ResponseDecoder(method: .get)
    var input = ByteBuffer(string: "HTTP/1.1 204 No Content\r\n\(lines)\r\n")
    guard case .head(let response)? = try decoder.next(&input) else {
      Issue.record("no head")
      return
    }
    #expect(KeepAliveTerms(of: response.head) == KeepAliveTerms(timeout: timeout, max: max))
  }
}
