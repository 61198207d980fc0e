import NIOSSL
import Platform
import Synchronization

/// The certificate that a listener uses, renewed from its files while connections come and go.
public final class ServerCertificate: Sendable {
  private struct State {
    var context: NIOSSLContext
    var stamps: [FileStatus?]
  }

  public let files: TLSFiles
  private let state: Mutex<State>

  public init(_ files: TLSFiles) throws(TLSFault) {
    self.files = files
    // Taken before the files are read, so that a change in between is noticed.
    let stamps = Self.stamps(of: files)
    state = Mutex(State(context: try files.context(), stamps: stamps))
  }

  /// The TLS context for new connections.
  public var context: NIOSSLContext { state.withLock { $0.context } }

  /// Reads the files again and uses their contents for new connections. On an error, the context in use stays the same.
  public func reload() throws(TLSFault) {
    let stamps = Self.stamps(of: files)
    state.withLock { $0.stamps = stamps }
    let context = try files.context()
    state.withLock { $0.context = context }
  }

  /// Reads the files again if they changed, for good or bad, since they were last checked.
  ///
  /// - Returns: True if they changed and were read.
  public func reloadIfChanged() throws(TLSFault) -> Bool {
    let stamps = Self.stamps(of: files)
    guard state.withLock({ $0.stamps != stamps }) else { return false }
    try reload()
    return true
  }

  private static func stamps(of files: TLSFiles) -> [FileStatus?] {
    [files.certificate, files.key, files.clientCA].map { $0.flatMap(FileStatus.init(readable:)) }
  }
}
