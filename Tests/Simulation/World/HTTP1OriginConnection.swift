import NIOCore

/// One connection of a node to the backend, and the exchange on it.
final class HTTP1OriginConnection: EndOwner, OriginExchange, OriginConnection {
  private let end: End
  private unowned let origin: Origin
  private var reader = HTTPReader(isClient: false)
  private var isBusy = false
  private var unsent = ByteBuffer()

  init(_ end: End, _ origin: Origin) {
    self.end = end
    self.origin = origin
    if end.hasBytes { arrived(at: end) }
  }

  var isOver: Bool { end.isOver }

  func arrived(at end: End) {
    while let bytes = end.read() { reader.feed(bytes) }
    while !isOver, !isBusy, let request = reader.next() {
      isBusy = true
      origin.take(request, on: self)
    }
    if end.isReset || end.hasEnded { end.close() }
  }

  func becameWritable(_ end: End) {
    let count = end.send(unsent)
    unsent.moveReaderIndex(forwardBy: count)
  }

  private func send(_ text: String) {
    unsent.writeString(text)
    becameWritable(end)
  }

  func respond(_ response: OriginResponse) { respond(response.text) }

  func respondTwice(_ response: OriginResponse, _ stray: OriginResponse) {
    respond(response.text + stray.text)
  }

  func respondAgain(_ stray: OriginResponse) {
    guard !isOver else { return }
    send(stray.text)
  }

  private func respond(_ text: String) {
    isBusy = false
    send(text)
    if reader.isAtStart == false { arrived(at: end) }
  }

  func respondPartly(_ response: OriginResponse, _ luck: Double) {
    let text = response.text
    let count = 1 + Int(luck * Double(text.utf8.count - 2))
    send(String(decoding: text.utf8.prefix(count), as: UTF8.self))
    origin.schedule.after(Span(seconds: luck * 0.05)) { [end] in end.close() }
  }

  func cut() { end.reset() }

  func turnOut() { if !isBusy, reader.isAtStart { end.close() } }

  func bidFarewell() {
    guard !isOver, !isBusy, reader.isAtStart else { return }
    send(OriginResponse(status: 502, fields: [("Connection", "close")], body: "{}").text)
    end.close()
  }
}
