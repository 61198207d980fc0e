import Calls
import Idempotency
import Logging
import NIOCore
import Platform
import Wire

/// Sends queries about unknown outcomes by libcurl, each on a thread of its own. `Reconciler` bounds their number.
struct BackendProbe: OutcomeProbe {
  let logger: Logger

  func send(_ query: ProbeQuery) async -> ProbeResponse? {
    await withUnsafeContinuation { continuation in
      guard !startThread({ continuation.resume(returning: response(to: query)) }) else { return }
      logNoResponse(of: query, "no thread could be started")
      continuation.resume(returning: nil)
    }
  }

  private func response(to query: ProbeQuery) -> ProbeResponse? {
    do throws(HTTPCall.Failure) {
      let response = try HTTPCall(query).send()
      guard let head = response.readHead() else {
        logNoResponse(of: query, "the head of its response can be read in more than one way")
        return nil
      }
      // A cut looks like the end of the connection, and clients would take a compressed body for the document itself.
      let isDelimited = !response.isHTTP1 || head.framing != .untilClose
      let isKept = response.isWhole && isDelimited && !head.head.hasContentCoding
      return ProbeResponse(
        status: response.status, contentType: head.head.string(.contentType), head: head.head,
        body: isKept ? ByteBuffer(bytes: response.body) : nil)
    } catch {
      logNoResponse(of: query, "\(error)")
      return nil
    }
  }

  private func logNoResponse(of query: ProbeQuery, _ error: String) {
    logger.info(
      "a backend did not respond to the query about an unknown outcome",
      metadata: ["upstream": "\(query.upstream.name)", "error": "\(error)"])
  }
}

extension HTTPCall.Response {
  fileprivate var isHTTP1: Bool { head.starts(with: "HTTP/1.".utf8) }

  /// The head, read as strictly as any backend's: libcurl's reading of an ambiguous one must decide nothing.
  fileprivate func readHead() -> ResponseHead? {
    var bytes = ByteBuffer(bytes: head)
    if !isHTTP1, let end = head.firstIndex(of: UInt8(ascii: "\n")) {
      bytes = ByteBuffer(string: "HTTP/1.1 \(status) \r\n")
      bytes.writeBytes(head[(end + 1)...])
    }
    var decoder = ResponseDecoder(method: .get)
    guard case .head(let head)? = try? decoder.next(&bytes) else { return nil }
    return head
  }
}

extension HTTPCall {
  fileprivate init(_ query: ProbeQuery) {
    let upstream = query.upstream
    let scheme = upstream.tls == nil ? "http" : "https"
    switch upstream.address {
    case .tcp:
      // libcurl verifies the name of the URL, and connects elsewhere.
      let name = upstream.tls?.serverName
      let port = upstream.address.description.split(separator: ":").last ?? ""
      self.init(
        url: "\(scheme)://\(name.map { "\($0):\(port)" } ?? upstream.address.description)\(query.target)")
      if let name { connectTo = "\(name):\(port):\(upstream.address)" }
    case .unix(let path):
      self.init(url: "\(scheme)://\(upstream.tls?.serverName ?? "localhost")\(query.target)")
      unixSocket = path
    }
    fields = ["Host: \(query.host)", "Accept-Encoding: identity"]
    if !query.fields.contains(where: { $0.name.lowercased() == "cache-control" }) {
      // A cache may keep a 404, which says nothing of a later attempt.
      fields.append("Cache-Control: no-cache")
    }
    fields += query.fields.map { "\($0.name): \($0.value)" }
    timeoutMilliseconds = Int(query.timeout.count)
    maxBytes = query.maxBody
    keepsPart = true
    isHTTP2 = upstream.http2 == .priorKnowledge
    if let tls = upstream.tls {
      authorities = tls.ca
      certificate = tls.certificate
      key = tls.key
    }
  }
}
