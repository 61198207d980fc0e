import Testing

@testable import Idempotency

/// SipHash-2-4 by the vectors of its authors: key 00 01 … 0f, message 00 01 … of the given length.
struct SipHashTests {
  @Test(
    arguments: [
      (0, 0x726f_db47_dd0e_0e31), (1, 0x74f8_39c5_93dc_67fd), (7, 0xab02_00f5_8b01_d137),
      (8, 0x93f5_f579_9a93_2462), (15, 0xa129_ca61_49be_45e5), (63, 0x958a_324c_eb06_4572),
    ] as [(Int, UInt64)])
  func `has the digests of the authors' vectors`(_ length: Int, _ digest: UInt64) {
    let hash = SipHash(key: Array(0..<16))
    let message = (0..<length).map { UInt8($0) }
    #expect(message.withUnsafeBytes(hash.digest) == digest)
  }
}
