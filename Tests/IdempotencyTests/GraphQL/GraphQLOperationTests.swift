import Idempotency
import NIOCore
import Testing
import Wire

/// The operation that a body selects.
struct GraphQLOperationTests {
  private func operation(
    _ body: String, type: String? = "application/json", coding: String? = nil, query: String? = nil
  ) throws -> GraphQLOperation {
    var head = try MessageHead(method: "POST", target: "/graphql")
    if let type { try head.append(name: "Content-Type", value: type) }
    if let coding { try head.append(name: "Content-Encoding", value: coding) }
    return GraphQLOperation(
      of: ByteBuffer(string: body), head: head, query: query.map { ByteBuffer(string: $0) })
  }

  @Test(arguments: [
    #"{"query":"{ a }"}"#,
    #" {"query":"query Q { a }","operationName":"Q","variables":{"query":"mutation"}} "#,
    #"{"query":"query Q { a } mutation M { b }","operationName":"Q"}"#,
    #"{"qu\u0065ry":"subscription { a }"}"#,
    #"{"query":"{ a }","operationName":null}"#, #"{"query":"{ a }","operationName":"","id":null}"#,
    ##"{"query":"# mutation\n{ a(x: \"mutation\") }"}"##, #"[{"query":"{ a }"},{"query":"query { b }"}]"#,
    #"{"query":"{ a }","extensions":{"persistedQuery":{"version":1,"sha256Hash":"x"}}}"#,
    #"{"query":"\u007b a \u007D","a":[{"id":1}],"identity":2}"#, #"{"query":"{ a }","operationName":"X"}"#,
  ])
  func `queries and subscriptions are no mutation`(body: String) throws {
    #expect(try operation(body) == .other)
    #expect(try operation(body, type: "application/graphql+json; charset=utf-8", query: "op=x") == .other)
  }

  @Test func `with an unclear media type the operation may be a mutation`() throws {
    let body = #"{"query":"{ a }"}"#
    #expect(try operation(body, type: "application/json; a=b, text/plain") == .mutation)
    var head = try MessageHead(method: "POST", target: "/graphql")
    for _ in 0..<2 { try head.append(name: "Content-Type", value: "application/json") }
    #expect(GraphQLOperation(of: ByteBuffer(string: body), head: head, query: nil) == .mutation)
  }

  @Test(arguments: [
    #"{"query":"mutation { a }"}"#, #"{"query":"query Q { a } mutation M { b }","operationName":"M"}"#,
    #"{"query":"query Q { a } mutation M { b }"}"#, #"{"query":"\u006dutation { a }"}"#,
    #"{"query":"query Q { a } mutation M { b }","operationName":"X"}"#,
    #"[{"query":"{ a }"},{"query":"mutation { b }"}]"#,
  ])
  func `mutations are found`(body: String) throws {
    #expect(try operation(body) == .mutation)
  }

  @Test(arguments: [
    "", "{", "query { a }", "{}", "[]", "null", #""{ a }""#, "[null]", #"[{"query":"{ a }"},1]"#,
    #"[{"query":"{ a }"},{}]"#, #"[[{"query":"{ a }"}]]"#, #"{"query":null}"#, #"{"query":["{ a }"]}"#,
    #"{"query":"{ a"}"#,
    #"{"query":""}"#, #"{"query":"{ a }","query":"{ a }"}"#, #"{"query":"{ a }","Query":"mutation { b }"}"#,
    #"{"QUERY":"{ a }"}"#, #"{"query":"{ a }","operationname":"Q"}"#, #"{"query":"{ a }","operationName":1}"#,
    #"{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"x"}}}"#, #"{"id":"x"}"#,
    #"{"documentId":"x"}"#,
    #"{"query":"{ a }","documentId":"x"}"#, #"{"query":"{ a }","doc_id":7}"#,
    #"{"query":"{ a }","i\u0064":"x"}"#,
    #"{"query":"{ a }","variables":{"a":1,"a":2}}"#,
    #"{"query":"{ a }","variables":\#(String(repeating: "[", count: 200))\#(String(repeating: "]", count: 200))}"#,
  ])
  func `what cannot be read counts as a mutation`(body: String) throws {
    #expect(try operation(body) == .mutation)
  }

  @Test func `another type, a content coding, and a URL that may replace the document count as a mutation`()
    throws
  {
    let body = #"{"query":"{ a }"}"#
    for type in [nil, "text/plain", "application/graphql", "multipart/form-data; boundary=x"] {
      #expect(try operation(body, type: type) == .mutation)
    }
    #expect(try operation(body, coding: "gzip") == .mutation)
    for query in [
      "query=x", "a=b&que%72y=x", "extensions=x", "documentId=x", "doc_id=x", "queryId=x", "id=x", "Query=x",
      "QUERY", "a=b&QUE%52Y=x", "Extensions=x", "documentid=x", "Id=3", "a;query=x", "+query=x", "%20query=x",
      "query[]=x", "a&query%5B0%5D=x", "query%00=x", "query%00x[]=x", "%00query=x", "%09query=x",
      "%0D%0A+query=x", "query%20=x", "query+%1F=x", "query%20[]=x", "doc.id=x", "doc+id=x", "doc[id=x",
    ] {
      #expect(try operation(body, query: query) == .mutation, "\(query)")
    }
    for query in ["q=x", "querys=x", "quer=x", "a=query", "[query]=x", "ids=x", "a%00query=x", "que%00ry=x"] {
      #expect(try operation(body, query: query) == .other, "\(query)")
    }
    #expect(try operation(body, query: "operationName=Q") == .other)
    let both = #"{"query":"query Q { a } mutation M { b }","operationName":"Q"}"#
    #expect(try operation(both) == .other)
    for query in [
      "operationName=M", "OperationName=M", "a&operationname=M", "OPERATION%4EAME=M", "operationName%00=M",
    ] {
      #expect(try operation(both, query: query) == .mutation, "\(query)")
    }
    #expect(try operation(both, query: "operation=M") == .other)
  }
}
