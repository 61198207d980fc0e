import NIOSSL
import Synchronization

/// A listener's certificate in use, renewed from its files while connections come and go.
public final class ServerCertificate: Sendable {
  private struct State {
    var context: NIOSSLContext
    /// Of the files when they were last looked at.
    var stamps: [FileStamp?]
  }

  public let files: TLSFiles
  private let state: Mutex<State>

  public init(_ files: TLSFiles) throws(TLSFault) {
    self.files = files
    // Looked at before they are read: what changes in between is seen as a change.
    let stamps = Self.stamps(of: files)
    state = Mutex(State(context: try files.context(), stamps: stamps))
  }

  /// What a new connection is secured with.
  public var context: NIOSSLContext { state.withLock { $0.context } }

  /// Reads the files again; those who connect from now on get what they hold. Where they are bad, all stays as it is.
  public func reload() throws(TLSFault) {
    let stamps = Self.stamps(of: files)
    state.withLock { $0.stamps = stamps }
    let context = try files.context()
    state.withLock { $0.context = context }
  }

  /// Reads the files again where they changed since they were last looked at, good or bad. True where it did.
  public func reloadIfChanged() throws(TLSFault) -> Bool {
    let stamps = Self.stamps(of: files)
    guard state.withLock({ $0.stamps != stamps }) else { return false }
    try reload()
    return true
  }

  private static func stamps(of files: TLSFiles) -> [FileStamp?] {
    [files.certificate, files.key, files.clientCA].map { $0.flatMap(FileStamp.init) }
  }
}
