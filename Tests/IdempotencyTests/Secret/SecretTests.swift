import Crypto
import Foundation
import Testing

@testable import Idempotency

struct SecretTests {
  @Test func `a secret is not shown by any way of printing`() {
    struct Holder {
      let secret: Secret? = "hunter2"
      let key = IdentityKey("hunter2")
    }
    var dumped = ""
    dump(Holder(), to: &dumped)
    for text in ["\(Holder())", String(reflecting: Holder()), dumped, "\(Secret("hunter2"))"] {
      #expect(!text.contains("hunter"), "\(text)")
      #expect(!text.contains("inner"), "\(text)")
    }
    #expect(Secret("hunter2").revealed == "hunter2")
  }

  @Test(arguments: [0, 1, 55, 64, 65, 200], [0, 1, 959, 960, 961, 5000])
  func `a keyed digest is HMAC-SHA-256`(keyLength: Int, length: Int) {
    let secret = String(repeating: "k", count: keyLength)
    let message = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    let made = FramedHash.digest(under: IdentityKey(Secret(secret))) { hash in
      message.withUnsafeBytes { hash.bytes($0) }
    }
    let expected = HMAC<SHA256>.authenticationCode(
      for: message, using: SymmetricKey(data: Array(secret.utf8)))
    #expect(made == Digest256(Array(expected)))
  }

  @Test func `digests in logs are equal exactly if the secret is shared`() throws {
    func text(_ key: String, _ digests: LogDigests) -> String { digests.text(Array(key.utf8)) }
    let (one, other) = (LogDigests(), LogDigests())
    #expect(text("key", one) == text("key", one))
    #expect(text("key", one) != text("key", other))
    #expect(text("abc", one) != "ba7816bf")
    one.share("shared")
    #expect(text("key", one) == text("key", LogDigests(secret: "shared")))
    one.share("later")
    #expect(text("key", one) == text("key", LogDigests(secret: "shared")))
    #expect(text("key", one) != text("other", one))
    #expect(Set((0..<300).map { text("\($0)", one).utf8.count }) == [8])
  }
}
