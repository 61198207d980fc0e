import Testing
import Wire

struct FieldNameTests {
  private func recognise(_ text: String) -> FieldName {
    text.bytes.withUnsafeBytes(FieldName.recognise)
  }

  @Test(arguments: FieldName.allCases.filter { $0 != .other })
  func `a known name is recognised in any letter case`(_ name: FieldName) {
    let text = "\(name.lowercased)"
    #expect(recognise(text) == name)
    #expect(recognise(text.uppercased()) == name)
    #expect(recognise(text.dropLast() + "!") == .other)
    #expect(recognise("y\(text.dropFirst())") == .other)
    #expect(recognise(text + "s") == .other)
  }

  @Test(arguments: ["", "x", "idempotency-timeouts", "content-typ\r", "content\rtype", "HOS\u{14}", "ho{t"])
  func `an unknown name is not recognised`(_ text: String) {
    #expect(recognise(text) == .other)
  }

  @Test
  func `letters compare in any case and other bytes as they are`() {
    for left in 0...255 as ClosedRange<UInt8> {
      for right in 0...255 as ClosedRange<UInt8> {
        let same = ASCII.lowercased(left) == ASCII.lowercased(right)
        let short = equal([left], [right])
        let long = equal(Array("12345678".utf8) + [left], Array("12345678".utf8) + [right])
        if short != same || long != same { Issue.record("\(left) and \(right)") }
      }
    }
  }

  private func equal(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    left.withUnsafeBytes { left in right.withUnsafeBytes { ASCII.equalsIgnoringCase(left, $0) } }
  }

  @Test
  func `the bytes of a token are those of the RFC`() {
    let token = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".bytes
    for byte in 0...255 as ClosedRange<UInt8> {
      #expect(ASCII.isTokenByte(byte) == token.contains(byte))
    }
  }
}
