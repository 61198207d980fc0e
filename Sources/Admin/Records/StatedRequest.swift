import Foundation
import HTTPTypes
import Idempotency
import NIOCore
import Wire

/// The request of a statement, as far as its operator describes it: fields that enter no fingerprint may be missing.
struct StatedRequest {
  private let head: MessageHead
  private let target: RequestTarget
  private let body: ByteBuffer

  init(_ statement: RecordStatement, of identity: RecordIdentity) throws(AdminError) {
    let payload = statement.payload
    guard let path = statement.record.path ?? identity.policy.match.path?.literal else {
      throw AdminError(.badRequest, "the route takes several paths: give the request's path")
    }
    guard payload.query?.hasPrefix("?") != true else {
      throw AdminError(.badRequest, "the query begins with its question mark: give it without, as in a=1&b=2")
    }
    do {
      var head = try MessageHead(
        method: identity.method, target: path + (payload.query.map { "?" + $0 } ?? ""))
      for (name, value) in (payload.headers ?? [:]).sorted(by: { $0.key < $1.key }) {
        try head.append(name: name, value: value)
      }
      self.head = head
      target = try RequestTarget(head)
    } catch {
      throw AdminError(.badRequest, "the path, the query or a header is not one that a request can have")
    }
    guard head.names.isDisjoint(with: .methodOverrides) else {
      throw AdminError(
        .badRequest,
        "no request with this key has a field that overrides its method: give the overriding method in record, and "
          + "take the field out of the payload's headers")
    }
    body = try Self.body(of: payload)
  }

  private static func body(of payload: RecordStatement.Payload) throws(AdminError) -> ByteBuffer {
    guard let encoded = payload.bodyBase64 else { return ByteBuffer(string: payload.body ?? "") }
    guard payload.body == nil, let data = Data(base64Encoded: encoded) else {
      throw AdminError(.badRequest, "give the payload's body once: as text, or in base64")
    }
    return ByteBuffer(bytes: data)
  }

  /// The fingerprint that the client's delivery will have.
  func fingerprint(by recipe: Recipe, method: String) -> Fingerprint {
    .make(
      recipe: recipe, head: head, method: ByteBuffer(string: method), path: target.path, query: target.query,
      body: body)
  }
}

// The key that the request has itself.
extension StatedRequest {
  /// The relation of a part of the record's key to the request.
  private enum Part {
    /// It is what the request has there.
    case equal
    /// The request has another one there.
    case other
    /// The request has none there.
    case missing
    /// It may be in what is not stated: a field, or a body that enters no fingerprint.
    case open
  }

  /// Refuses a request that has another key than the record, or none: its delivery would not meet the record.
  ///
  /// - Parameter texts: The record's key, part by part.
  func checkKey(_ texts: [String], of identity: RecordIdentity) throws(AdminError) {
    // A source that the request lacks is passed over. One that fits, or may fit, accepts; one that differs refuses,
    // unless a part of it is not stated.
    for source in identity.policy.key.from where source != .payload {
      var parts: [Part] = []
      for (index, part) in source.parts.enumerated() {
        let text = source.parts.count == texts.count ? Array(texts[index].utf8) : nil
        let wanted = source.parts.count == 1 ? identity.key.bytes : text
        parts.append(try relation(of: part, to: wanted, of: identity))
      }
      if parts.contains(.missing) { continue }
      if source.parts.count == texts.count, parts.allSatisfy({ $0 == .equal || $0 == .open }) { return }
      guard parts.contains(.open) else {
        throw AdminError(
          .badRequest, "the payload has another key than the record, at \(source.text): give both alike")
      }
    }
    let sources = identity.policy.key.from.map(\.text).joined(separator: ", ")
    throw AdminError(
      .badRequest,
      "no delivery of this payload has the record's key: the route takes keys from \(sources); give the payload as the "
        + "client sends it")
  }

  private func relation(
    of source: KeySource, to wanted: [UInt8]?, of identity: RecordIdentity
  ) throws(AdminError) -> Part {
    if case .header(let name) = source, head.fields(named: name).isEmpty { return .open }
    var policy = identity.policy.key
    policy.from = [source]
    let found: IdempotencyKey?
    do {
      found = try policy.key(head: head, query: target.query, body: body) {
        fingerprint(by: identity.policy.recipe, method: identity.method)
      }
    } catch {
      throw AdminError(
        .badRequest, "a delivery of this payload is refused (\(error.code.rawValue)): \(error.detail)")
    }
    guard let found else { return source.isInBody ? .open : .missing }
    return found.bytes == wanted ? .equal : .other
  }
}

// The caller that the request has itself.
extension StatedRequest {
  /// Refuses a request that has another caller than the record: its delivery would not meet the record.
  ///
  /// - Parameter values: The values of the record's caller by part.
  func checkCaller(_ values: [String: String], of identity: RecordIdentity) throws(AdminError) {
    for part in identity.policy.caller?.parts ?? [] where isStated(part) {
      let value = values.first { CallerPart.normalized($0.key) == part.text }?.value ?? ""
      var policy = identity.policy.caller ?? CallerPolicy(parts: [])
      (policy.parts, policy.anonymous) = ([part], .allow)
      let stated = try? policy.caller(
        head: head, peer: CallerPeer(address: nil), query: target.query, body: body)
      let nobody = try? policy.caller(values: [:])
      // A member that enters no fingerprint may be left out of the body.
      if case .json(let pointer) = part, stated == nobody,
        identity.policy.recipe.body == .none || identity.policy.recipe.ignore.contains(pointer)
      {
        continue
      }
      guard stated == (try? policy.caller(values: [part.text: value])) else {
        throw AdminError(
          .badRequest, "the payload has another caller than the record, at \(part.text): give both alike")
      }
    }
  }

  /// Whether the part is in what the operator describes.
  private func isStated(_ part: CallerPart) -> Bool {
    switch part {
    case .header(let name): !head.fields(named: name).isEmpty
    case .cookie: head.first(.cookie) != nil
    case .query, .json: true
    case .jwt, .address, .clientCertificate: false
    }
  }
}
