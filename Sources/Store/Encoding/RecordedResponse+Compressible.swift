import Idempotency
import Wire

extension RecordedResponse {
  var isCompressible: Bool {
    var isCompressible = true
    fields.eachFieldLine { name, value in
      switch name {
      case "content-encoding": if value.lowercased() != "identity" { isCompressible = false }
      case "content-type": if Self.isCompressed(type: value) { isCompressible = false }
      default: break
      }
    }
    return isCompressible
  }

  private static func isCompressed(type text: String) -> Bool {
    let type = text.prefix { $0 != ";" && $0 != " " && $0 != "\t" }.lowercased()
    guard let slash = type.firstIndex(of: "/") else { return false }
    switch type[..<slash] {
    case "image": return !type.hasSuffix("+xml") && type != "image/bmp"
    case "video": return true
    case "audio": return type != "audio/wav"
    default:
      return compressedTypes.contains(type) || type.hasSuffix("+zip") || type.hasSuffix("+gzip")
        || type.hasPrefix("application/vnd.openxmlformats-")
        || type.hasPrefix("application/vnd.oasis.opendocument.")
    }
  }

  private static let compressedTypes: Set<String> = [
    "application/gzip", "application/java-archive", "application/vnd.rar", "application/x-7z-compressed",
    "application/x-bzip2", "application/x-gzip", "application/x-rar-compressed", "application/x-xz",
    "application/zip", "application/zstd", "font/woff", "font/woff2",
  ]
}
