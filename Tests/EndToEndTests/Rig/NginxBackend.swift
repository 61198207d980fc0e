import Foundation
import TestSupport

/// Debian's nginx with TLS, and HTTP/2 where a client wants it, before a backend of the tests'.
///
/// It tells the backend how it was spoken to: `X-Protocol`, `X-Server-Name`, `X-Client` and `X-Connection`.
struct NginxBackend: Sendable {
  private let directory = TemporaryDirectory()
  private let process: ManagedProcess

  /// Starts it and waits until it listens.
  ///
  /// - Parameter members: further directives of its server, such as `ssl_verify_client on;`.
  init(
    port: Int, before backend: Int, _ pair: Certificates.Pair, speaksHTTP2: Bool = true,
    _ members: String = ""
  ) async throws {
    let directory = directory
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
      .map { "\($0)_temp_path \(directory.file($0));" }.joined(separator: " ")
    let configuration = """
      daemon off; master_process off; error_log stderr; pid \(directory.file("pid"));
      events { worker_connections 1024; }
      http {
        access_log off; \(temporary)
        server {
          listen 127.0.0.1:\(port) ssl\(speaksHTTP2 ? " http2" : "");
          ssl_certificate \(pair.certificate); ssl_certificate_key \(pair.key); \(members)
          client_max_body_size 0;
          location / {
            proxy_pass http://127.0.0.1:\(backend);
            proxy_http_version 1.1; proxy_buffering off; proxy_request_buffering off;
            proxy_set_header X-Protocol $server_protocol; proxy_set_header X-Server-Name $ssl_server_name;
            proxy_set_header X-Client $ssl_client_s_dn; proxy_set_header X-Connection $connection;
          }
        }
      }
      """
    try configuration.write(toFile: directory.file("nginx.conf"), atomically: true, encoding: .utf8)
    process = try ManagedProcess([
      "nginx", "-p", directory.path, "-c", directory.file("nginx.conf"),
    ])
    try await process.awaitListening(at: port)
  }
}
