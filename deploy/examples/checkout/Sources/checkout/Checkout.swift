import Foundation
import SemelClient
import Shop

/// `checkout FILE ORIGIN ITEM…` buys each item once, however often it is killed and started again.
@main
struct Checkout {
  static func main() async throws {
    let arguments = Array(CommandLine.arguments.dropFirst())
    guard arguments.count >= 2, let origin = Origin(arguments[1]) else {
      FileHandle.standardError.write(Data("usage: checkout FILE ORIGIN ITEM…\n".utf8))
      exit(2)
    }
    let shop = try await Shop(file: arguments[0], origin: origin)
    for item in arguments.dropFirst(2) { try await shop.buy(item) }
    try await shop.confirmAll()
    for receipt in try await shop.receipts() { print(receipt) }
  }
}
