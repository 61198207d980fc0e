/// Addresses of Unix sockets, as in `unix:/run/semel.sock`.
enum UnixPath {
  static func parse(_ text: String) throws(Refusal) -> String {
    let path = text.dropFirst("unix:".count)
    // The address structure has room for 108 bytes on Linux and 104 elsewhere, and a NUL ends the path.
    guard path.hasPrefix("/"), path.utf8.count < 104, !path.utf8.contains(0) else {
      throw Refusal("must have an absolute path of at most 103 bytes, such as unix:/run/semel.sock")
    }
    return String(path)
  }
}
