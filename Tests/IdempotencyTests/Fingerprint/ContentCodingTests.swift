import Foundation
import Idempotency
import NIOCore
import Testing

/// Compressed bodies are compared by their content.
struct ContentCodingTests {
  private static let plain = Request("application/json", text)
  private static let text = ##"{"a":1.0,"b":[1,2,3],"c":"some text some text some text some text"}"##

  /// The same content in each coding, from different compressors.
  static let coded = [
    ("gzip", "H4sIAOgDAAAE/6tWSlSyMtQz0FFKUrKKNtQx0jGO1VFKVrJSKs7PTVUoSa0oUcDLUqoFAN0AWA5DAAAA"),
    ("x-gzip", "H4sIACgjAAAC/6tWSlSyMtQz0FFKUrKKNtQx0jGO1VFKVrJSKs7PTVUoSa0oUcDLUqoFAN0AWA5DAAAA"),
    ("GZIP", "H4sIAIgTAAAA/6tWSlSyMtQz0FFKUrKKNtQx0jGO1VFKVrJSKs7PTVUoSa0oUcDLUqoFAN0AWA5DAAAA"),
    ("deflate", "eAGrVkpUsjLUM9BRSlKyijbUMdIxjtVRSlayUirOz01VKEmtKFHAy1KqBQCESxUu"),
    ("deflate", "q1ZKVLIy1DPQUUpSsoo21DHSMY7VUUpWslIqzs9NVShJrShRwMtSqgUA"),
    ("zstd", "KLUv/SRDbQEAZAJ7ImEiOjEuMCwiYiI6WzEsMiwzXSwiYyI6InNvbWUgdGV4dCAifQEA7F2ewvl49Q=="),
    ("zstd", "KLUv/QBobQEAZAJ7ImEiOjEuMCwiYiI6WzEsMiwzXSwiYyI6InNvbWUgdGV4dCAifQEA7F2e"),
  ]

  private func request(_ coding: String, _ bytes: some Sequence<UInt8>, type: String = "application/json")
    -> Request
  {
    var request = Request(type, body: bytes)
    request.fields.append(("Content-Encoding", coding))
    return request
  }

  private func bytes(_ text: String) throws -> [UInt8] { Array(try #require(Data(base64Encoded: text))) }

  @Test(arguments: coded)
  func `the content counts, however it is compressed`(coding: String, text: String) throws {
    let body = try bytes(text)
    #expect(request(coding, body).fingerprint() == Self.plain.fingerprint())
    #expect(request(coding, body, type: "a/b").fingerprint() == Request("a/b", Self.text).fingerprint())
    #expect(request(coding, body).fingerprint(.one) != Self.plain.fingerprint(.one))
    let ignore = Recipe(ignore: [.json("/a")])
    #expect(request(coding, body).fingerprint(ignore) == Self.plain.fingerprint(ignore))
    #expect(Recipe().form(of: ByteBuffer(bytes: body), request(coding, body).head) == .json)
  }

  @Test(arguments: coded)
  func `a body that is not exactly one sound stream counts as its bytes`(coding: String, text: String) throws
  {
    let body = try bytes(text)
    var damaged = body
    damaged[body.count / 2] ^= 0xFF
    let bodies = [body + [0], Array(body.dropLast()), [], Array(Self.text.utf8), body + body, damaged]
    for other in bodies {
      let form = Recipe().form(of: ByteBuffer(bytes: other), request(coding, other).head)
      // Without a checksum some damage is another content.
      if other != damaged { #expect(form == .coded) }
      #expect(request(coding, other).fingerprint() != Self.plain.fingerprint())
    }
    #expect(Set(bodies.map { request(coding, $0).fingerprint() }).count == bodies.count)
    for other in ["br", "gzip, gzip", "identity, \(coding)", "\(coding)x"] {
      #expect(request(other, body).fingerprint() != Self.plain.fingerprint())
    }
    var twice = request(coding, body)
    twice.fields.append(("Content-Encoding", coding))
    #expect(twice.fingerprint() != Self.plain.fingerprint())
  }

  @Test(arguments: coded)
  func `a content above the recipe's limit counts as its coded bytes`(coding: String, text: String) throws {
    let body = try bytes(text)
    let exact = Recipe(contentLimit: Self.text.utf8.count)
    let less = Recipe(contentLimit: Self.text.utf8.count - 1)
    #expect(request(coding, body).fingerprint(exact).digest == Self.plain.fingerprint().digest)
    #expect(less.form(of: ByteBuffer(bytes: body), request(coding, body).head) == .coded)
    #expect(request(coding, body).fingerprint(less).digest != Self.plain.fingerprint().digest)
  }

  /// A million spaces.
  private static let bomb =
    "H4sIAEopC2sC/+3BgQAAAADDIJX5Ux7kVQEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAK8G1wgmy0BCDwA="

  @Test func `a content of more than a hundred times its coded size is not read`() throws {
    let body = try bytes(Self.bomb)
    let head = request("gzip", body).head
    let recipe = Recipe(contentLimit: 2 << 20)
    #expect(recipe.contentBytes(of: ByteBuffer(bytes: body), head) == 0)
    #expect(recipe.form(of: ByteBuffer(bytes: body), head) == .coded)
    // One that lies about its size is read up to that size.
    var lying = body
    lying.replaceSubrange((body.count - 4)..., with: [1, 0, 0, 0])
    #expect(recipe.contentBytes(of: ByteBuffer(bytes: lying), head) == 1)
    #expect(recipe.form(of: ByteBuffer(bytes: lying), head) == .coded)
  }
}
