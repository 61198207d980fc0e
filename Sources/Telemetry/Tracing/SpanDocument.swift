import Wire

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
    text += "\"\(span.context.span.hexText)\""
    if let parent = span.parent { text += #","parentSpanId":"\#(parent.hexText)""# }
    text += #","name":\#(span.name.jsonString),"kind":\#(span.kind.rawValue)"#
    // The JSON of Protocol Buffers writes 64-bit numbers as strings.
    text += #","startTimeUnixNano":"\#(span.start)","endTimeUnixNano":"\#(span.end)""#
    text += #","attributes":["# + span.attributes.map(attribute).joined(separator: ",") + "]"
    if let link = span.link {
      let linked = link.span.hexText
      text += #","links":[{"traceId":"\#(link.traceText)","spanId":"\#(linked)"}]"#
    }
    // 2 is an error, and 0 is unset.
    text += #","status":{"code":\#(span.isError ? 2 : 0)}}"#
    return text
  }

  private static func attribute(_ name: String, _ value: Span.Value) -> String {
    switch value {
    case .text(let text): #"{"key":\#(name.jsonString),"value":{"stringValue":\#(text.jsonString)}}"#
    case .number(let number): #"{"key":\#(name.jsonString),"value":{"intValue":"\#(number)"}}"#
    }
  }
}
