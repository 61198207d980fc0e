import Testing
import Yams

@testable import OpenAPI

/// Reading and writing a document in either notation.
struct APIDocumentTests {
  @Test func `JSON stays JSON, with its numbers and its strings`() throws {
    let text = """
      {
        "openapi": "3.0.3",
        "x-numbers": [
          1.0,
          1e5,
          -0,
          true,
          null,
          "true",
          "1.0"
        ],
        "x-text": "a \\"b\\" \\\\ / \u{1F600} ä\\u0009",
        "x-empty": {},
        "x-none": []
      }

      """
    #expect(try APIDocument(text).text() == text)
  }

  @Test func `escapes of JSON are read, pairs of surrogates too`() throws {
    let document = try APIDocument(
      #"{"openapi":"3.1.0","a":"\ud83d\ude00\/\\ud83d\u00e4","b":{"\ud83d\ude00":1}}"#)
    #expect(document.root.member("a")?.scalar?.string == #"😀/\ud83dä"#)
    #expect(document.root.member("b")?.member("😀")?.scalar?.string == "1")
  }

  @Test func `YAML keeps the spelling of its scalars`() throws {
    let text = """
      openapi: 3.0.3
      info:
        version: '1.0'
        description: |
          Two
          lines
        x-list:
        - 1.0
        - "a"
        - yes
      paths:
        /a:
          get:
            responses:
              200:
                description: >-
                  folded

      """
    #expect(try APIDocument(text).text() == text)
  }

  @Test func `an alias is written out`() throws {
    let text = "openapi: 3.1.0\nx-a: &a {b: 1}\nx-c: *a\n"
    #expect(try APIDocument(text).text() == "openapi: 3.1.0\nx-a:\n  b: 1\nx-c:\n  b: 1\n")
  }

  @Test(arguments: [
    ("swagger: '2.0'\n", "OpenAPI 3.0 and 3.1 are read, and the document has version 2.0: convert it first"),
    (
      "openapi: 3.10.0\n",
      "OpenAPI 3.0 and 3.1 are read, and the document has version 3.10.0: convert it first"
    ),
    (
      "{\"info\": {}}",
      "OpenAPI 3.0 and 3.1 are read, and the document has no version in its member openapi: convert it first"
    ),
    ("", "the document is empty"),
  ])
  func `another document is refused`(text: String, reason: String) {
    #expect(throws: APIDocument.Fault(description: reason)) { try APIDocument(text) }
  }

  @Test func `a text that is neither is refused with its place`() {
    #expect(throws: APIDocument.Fault.self) { try APIDocument("{\"openapi\": ") }
    do throws(APIDocument.Fault) {
      _ = try APIDocument("openapi: 3.1.0\na: [1\n")
    } catch {
      #expect(error.description.hasPrefix("line 3, column 1: neither JSON nor YAML: "), "\(error)")
    }
  }
}
