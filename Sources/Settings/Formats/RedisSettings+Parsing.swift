import Idempotency
import TLS
import Wire

extension RedisSettings {
  static let allowed = "redis://host:port/0, rediss://host:port/0 or unix:/path"

  /// Parses `redis://user:password@host:port/0`, the same with `rediss` for TLS, or `unix:/path`. User and password may
  /// be percent-encoded.
  static func parse(_ text: String) throws(Refusal) -> RedisSettings {
    if text.hasPrefix("unix:") { return RedisSettings(address: .unix(path: try UnixPath.parse(text))) }
    let isSecure = text.hasPrefix("rediss://")
    guard isSecure || text.hasPrefix("redis://") else { throw Refusal("must be \(allowed)") }
    var rest = text.dropFirst(isSecure ? "rediss://".count : "redis://".count)
    if rest.contains(where: { "?#".contains($0) }) {
      throw Refusal("must end after the database's number; a ? or # in a password is written %3F or %23")
    }
    var user: Substring?
    var password: Substring?
    if let at = rest.lastIndex(of: "@") {
      let pair = rest[..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      guard pair.count == 2 else {
        throw Refusal(
          "must have a password behind the user: redis://user:password@host, or redis://:password@host")
      }
      (user, password) = (pair[0].isEmpty ? nil : pair[0], pair[1])
      rest = rest[at...].dropFirst()
    }
    let slash = rest.firstIndex(of: "/") ?? rest.endIndex
    let address = try HostPort.parse(rest[..<slash], port: 6379)
    var settings = RedisSettings(address: .tcp(host: address.host, port: address.port))
    if isSecure { settings.login.tls = ClientTLSFiles() }
    settings.login.user = try user.map(decoded)
    settings.login.password = try password.map { text throws(Refusal) in Secret(try decoded(text)) }
    settings.database = try database(rest[slash...].dropFirst())
    return settings
  }

  private static func database(_ text: Substring) throws(Refusal) -> Int {
    if text.isEmpty { return 0 }
    guard text.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }), let number = Int32(text)
    else {
      throw Refusal("must have the database's number as its path, such as redis://host:port/0")
    }
    return Int(number)
  }

  private static func decoded(_ text: Substring) throws(Refusal) -> String {
    let message = "must have user and password percent-encoded: % as %25, @ as %40, / as %2F"
    var bytes: [UInt8] = []
    var rest = text.utf8
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      let digits = rest.prefix(2)
      guard digits.count == 2, digits.allSatisfy({ "0123456789abcdefABCDEF".utf8.contains($0) }),
        let value = UInt8(String(Substring(digits)), radix: 16)
      else { throw Refusal(message) }
      bytes.append(value)
      rest = rest.dropFirst(2)
    }
    guard let decoded = String(validating: bytes, as: UTF8.self) else { throw Refusal(message) }
    return decoded
  }
}
