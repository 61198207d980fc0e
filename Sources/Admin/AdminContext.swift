import Hummingbird
import NIOCore
import Wire

/// The context of a request to the admin listener.
struct AdminContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  /// The client's address, for the audit log.
  let peer: String
  /// The address at which the request arrived; `nil` if it is not known.
  let local: IPAddress?

  init(source: ApplicationRequestContextSource) {
    coreContext = .init(source: source)
    peer = source.channel.remoteAddress?.ipAddress ?? "unknown"
    local = source.channel.localAddress?.ipAddress.flatMap { IPAddress($0) }
  }
}
