import Hummingbird
import NIOCore
import Wire

/// What is known of a request to the operator's listener.
struct AdminContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  /// Who asks, for the audit line.
  let peer: String
  /// The address at which the request arrived.
  let local: IPAddress?

  init(source: ApplicationRequestContextSource) {
    coreContext = .init(source: source)
    peer = source.channel.remoteAddress?.ipAddress ?? "unknown"
    local = source.channel.localAddress?.ipAddress.flatMap { IPAddress($0) }
  }
}
