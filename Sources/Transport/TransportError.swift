/// Why the transport could not be set up. Nothing was sent; the process cannot serve.
public enum TransportError: Error, Equatable {
  /// A system call failed, with its `errno`.
  case system(String, Int32)
  /// libcurl could not be initialised.
  case curl
}
