/// The encoder of spans as the body of an OTLP/HTTP request in JSON (`ExportTraceServiceRequest`).
enum SpanDocument {
  static func encode(_ spans: [Span]) -> [UInt8] {
    var text = #"{"resourceSpans":[{"resource":{"attributes":["#
    text += attribute("service.name", .text("semel"))
    text += #"]},"scopeSpans":[{"scope":{"name":"semel"},"spans":["#
    text += spans.map(span).joined(separator: ",")
    text += "]}]}]}"
    return Array(text.utf8)
  }

  private static func span(_ span: Span) -> String {
    var text = #"{"traceId":"\#(span.context.traceText)","spanId":"#
    text += "\"\(TraceContext.hexadecimal(span.context.span))\""
    if span.parent != 0 { text += #","parentSpanId":"\#(TraceContext.hexadecimal(span.parent))""# }
    text += #","name":\#(quoted(span.name)),"kind":\#(span.kind.rawValue)"#
    // The JSON of Protocol Buffers writes 64-bit numbers as strings.
    text += #","startTimeUnixNano":"\#(span.start)","endTimeUnixNano":"\#(span.end)""#
    text += #","attributes":["# + span.attributes.map(attribute).joined(separator: ",") + "]"
    if let link = span.link {
      let linked = TraceContext.hexadecimal(link.span)
      text += #","links":[{"traceId":"\#(link.traceText)","spanId":"\#(linked)"}]"#
    }
    // 2 is an error, and 0 is unset.
    text += #","status":{"code":\#(span.isError ? 2 : 0)}}"#
    return text
  }

  private static func attribute(_ name: String, _ value: Span.Value) -> String {
    switch value {
    case .text(let text): #"{"key":\#(quoted(name)),"value":{"stringValue":\#(quoted(text))}}"#
    case .number(let number): #"{"key":\#(quoted(name)),"value":{"intValue":"\#(number)"}}"#
    }
  }

  private static func quoted(_ text: String) -> String {
    var bytes = Array("\"".utf8)
    bytes.appendEscaped(text.utf8)
    bytes.append(UInt8(ascii: "\""))
    return String(decoding: bytes, as: UTF8.self)
  }
}
