import NIOCore

/// The bytes of a buffer, held where they are for as long as this lives.
final class HeldBytes {
  let start: UnsafeRawPointer
  let count: Int
  private let storage: Unmanaged<AnyObject>

  init(_ bytes: ByteBuffer) {
    count = bytes.readableBytes
    (start, storage) = bytes.withUnsafeReadableBytesWithStorageManagement { bytes, storage in
      (bytes.baseAddress ?? UnsafeRawPointer(Self.nothing.utf8Start), storage.retain())
    }
  }

  deinit { storage.release() }

  /// libcurl takes a null pointer for *read it by callback*, also where the length is zero.
  private static let nothing: StaticString = ""
}
