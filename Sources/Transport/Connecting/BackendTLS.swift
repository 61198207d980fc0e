import Idempotency
import Synchronization
import TLS

/// The TLS clients of all backends, which the event loops share. Safe from any thread.
public final class BackendTLS: Sendable {
  private struct Key: Hashable {
    var files: ClientTLSFiles
    var protocols: [String]
  }

  /// The result of checking one client's files, if they have changed or cannot be used.
  public enum Renewal: Sendable {
    case renewed(ClientTLSFiles)
    /// The files cannot be used; the earlier ones stay in use.
    case failed(ClientTLSFiles, TLSFault)
  }

  private let clients = Mutex<[Key: ClientTLS]>([:])

  public init() {}

  /// The client of these files. Reads them if no other event loop has.
  func client(of files: ClientTLSFiles, protocols: [String]) throws(TLSFault) -> ClientTLS {
    let key = Key(files: files, protocols: protocols)
    return try clients.withLock { clients throws(TLSFault) in
      if let client = clients[key] { return client }
      let client = try ClientTLS(key.files, protocols: protocols)
      clients[key] = client
      return client
    }
  }

  /// Takes changed files into use. Connections that were made with the earlier ones take no further requests.
  public func renew() -> [Renewal] {
    let all = clients.withLock { clients in
      // A client that no pool uses belongs to an earlier configuration.
      for key in Array(clients.keys) {
        if isKnownUniquelyReferenced(&clients[key]) { clients[key] = nil }
      }
      return Array(clients.values)
    }
    return all.compactMap { client in
      do throws(TLSFault) {
        return try client.renewIfChanged() ? .renewed(client.files) : nil
      } catch {
        return .failed(client.files, error)
      }
    }
  }
}
