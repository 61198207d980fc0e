import Idempotency
import Testing

@testable import Admin

/// Text in pages.
struct HTMLTextTests {
  @Test(arguments: [
    ("plain", "plain"), ("<b a='1'>&\"", "&lt;b a=&#39;1&#39;&gt;&amp;&quot;"),
    // A quotation mark with a combining mark is one character.
    ("\"\u{301}", "&quot;\u{301}"), ("<\u{200D}b", "&lt;\u{200D}b"),
    ("a\u{0}\u{1B}[2J\u{202E}b", "a\u{FFFD}\u{FFFD}[2J\u{FFFD}b"),
    ("line\nline\t", "line\nline\t"),
  ])
  func `nothing of a text ends an element or an attribute`(text: String, escaped: String) {
    #expect(HTMLText.escaped(text) == escaped)
    #expect(
      ConsoleTemplates.render(view(["detail": text, "title": "", "status": 1, "phrase": ""]), "error")
        .contains(escaped))
  }

  @Test func `a value that is missing is not looked for in the views around it`() {
    let entry = view([
      "time": "t", "action": "a", "record": nil, "from": "f", "reason_text": "r", "details": "d",
      "warning": nil,
    ])
    let page = view(["entries": [entry], "has_entries": true, "record": "outer", "warning": "outer"])
    #expect(!ConsoleTemplates.render(page, "audit").contains("outer"))
  }

  @Test(arguments: [("15m", 900_000), ("90", 90_000), ("2h", 7_200_000), ("1d", 86_400_000), ("0", 0)])
  func `spans of forms are read`(text: String, milliseconds: Int64) {
    #expect(Words.parsed(text)?.count == milliseconds)
  }

  @Test(arguments: ["", "m", "-1", "1w", "1 h", "99999999999999999999", "1.5h"])
  func `what is no span is refused`(text: String) { #expect(Words.parsed(text) == nil) }

  @Test func `numbers are grouped`() {
    #expect(
      Words.number(999) == "999" && Words.number(1_234_567) == "1\u{202F}234\u{202F}567"
        && Words.number(-1000) == "−1\u{202F}000")
  }
}

/// Charts as SVG.
struct ChartTests {
  @Test(arguments: [
    (0, 2), (2, 2), (3, 4), (5, 6), (7, 8), (9, 10), (11, 20), (60, 60), (61, 80), (999, 1000),
  ])
  func `the axis ends at a number whose half is whole`(highest: Int, ceiling: Int) {
    #expect(Chart.ceiling(highest) == ceiling)
  }

  @Test func `a column is as high as its share of the axis, and the picture names itself`() {
    let chart = Chart(name: "x").columns(
      [[0, 0, 0, 0, 0], [5, 5, 0, 0, 0]], title: "a <b>", span: ["then", "", "now"], unit: "u")
    #expect(
      chart.contains("<title id=\"x-title\">a &lt;b&gt;</title>")
        && chart.contains("aria-labelledby=\"x-title\""))
    // Ten is the axis's end, 122 units above its beginning: each half is 61.
    #expect(chart.matches(of: /v61h/).count == 3)
    #expect(!chart.contains("s-refused"))
  }
}
