import Foundation
import TestSupport

/// Debian's nginx with Lua and Redis in front of a backend: the idempotency that people write today (`peer.lua` of the
/// load tests).
struct LuaPeer: Sendable {
  private static let module = "/usr/lib/nginx/modules/ngx_http_lua_module.so"

  let port = FreePort.find()
  private let directory = TemporaryDirectory()
  private let redis: RedisServer
  private let process: ManagedProcess

  /// Starts it and waits until it listens.
  init(before backend: Int) async throws {
    guard FileManager.default.fileExists(atPath: Self.module) else {
      try Tool.skip("nginx has no module for Lua; deploy/install test installs it")
    }
    redis = try await RedisServer()
    let script = URL(fileURLWithPath: #filePath)
      .appendingPathComponent("../../../../deploy/loadtest/peer.lua").standardized.path
    let configuration = Self.configuration(
      port: port, backend: backend, redis: redis.port, script: script, directory: directory)
    try configuration.write(toFile: directory.file("nginx.conf"), atomically: true, encoding: .utf8)
    process = try ManagedProcess([
      "nginx", "-p", directory.path, "-c", directory.file("nginx.conf"),
    ])
    let deadline = ContinuousClock.now + .seconds(20)
    while (try? await RawClient(port: port)) == nil {
      guard process.state.value.exit == nil, ContinuousClock.now < deadline else {
        throw TestFailure("nginx with Lua does not listen:\n\(process.errors)")
      }
      try await Task.sleep(for: .milliseconds(10))
    }
  }

  private static func configuration(
    port: Int, backend: Int, redis: Int, script: String, directory: TemporaryDirectory
  ) -> String {
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
      .map { "\($0)_temp_path \(directory.file($0));" }.joined(separator: " ")
    return """
      load_module /usr/lib/nginx/modules/ndk_http_module.so;
      load_module \(module);
      daemon off; master_process off; error_log stderr; pid \(directory.file("pid"));
      events { worker_connections 1024; }
      http {
        access_log off; \(temporary)
        server {
          listen 127.0.0.1:\(port);
          set $redis_port \(redis);
          location / { content_by_lua_file \(script); }
          location /backend/ { internal; proxy_pass http://127.0.0.1:\(backend)/; }
        }
      }
      """
  }
}
