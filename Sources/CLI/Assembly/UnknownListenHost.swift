import NIOCore
import Settings
import Wire

/// The failure to listen on a host name for which the system has no address.
struct UnknownListenHost: Error, CustomStringConvertible {
  let description: String

  /// - Parameter member: The member or the option that names the host; `nil` if it is not known.
  init(_ error: SocketAddressError.UnknownHost, member: String?) {
    let address = ServerAddress.tcp(host: error.host, port: error.port)
    let place = member.map { " (\($0))" } ?? ""
    description =
      "cannot listen on \(address)\(place): this machine finds no address of that name "
      + "(\(error.errorDescription)); write an address of its own, such as 127.0.0.1, or 0.0.0.0 for all of them, or "
      + "make the name known, such as in /etc/hosts"
  }

  /// The failure of a listener of these settings; `nil` if an error is of another kind.
  init?(_ error: any Error, in settings: Settings) {
    guard let error = error as? SocketAddressError.UnknownHost else { return nil }
    let address = ServerAddress.tcp(host: error.host, port: error.port)
    let index = settings.listen.firstIndex { $0.address == address }
    let isAdmin = settings.admin.map { $0.host == error.host && $0.port == error.port } ?? false
    self.init(error, member: index.map { "listen[\($0)].address" } ?? (isAdmin ? "admin.address" : nil))
  }
}
