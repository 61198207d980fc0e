@testable import Idempotency

extension Target {
  /// A GraphQL document: a mutation is found behind every document that can be read, and none in its comments or
  /// strings.
  static func graphqlFault(in bytes: [UInt8]) -> String? {
    guard let own = reading(of: bytes) else { return nil }
    let line: [UInt8] = [0x0A]
    guard let more = reading(of: bytes + line + Array("mutation m { a }".utf8)), more.mayMutate,
      more.count == own.count + 1
    else { return "a mutation behind a document is not found" }
    let quoted = Array(
      ##"query q(a: "{ mutation", b: """ } mutation \""" { """) { mutation } # mutation { a }"##.utf8)
    guard let less = reading(of: quoted + line + bytes), less.count == own.count + 1,
      less.hasMutation == own.hasMutation
    else { return "a word in a string, a comment or a selection counts" }
    guard own.count > 0 || own.mayMutate else { return "a document without an operation passes for a query" }
    return nil
  }

  private static func reading(of bytes: [UInt8]) -> GraphQLDocument? {
    bytes.withUnsafeBytes { try? GraphQLDocument($0, wanted: nil) }
  }
}
