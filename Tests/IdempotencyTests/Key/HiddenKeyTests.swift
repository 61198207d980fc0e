import Idempotency
import NIOCore
import Testing

/// Bodies in which a backend may find a key that Semel does not read: without another key they are refused.
struct HiddenKeyTests {
  private static let form = "multipart/form-data; boundary=XX"

  /// A form with a part of this head, and a plain one.
  private static func body(_ head: String) -> String {
    let amount = "Content-Disposition: form-data; name=\"amount\"\r\n\r\n5"
    return "--XX\r\n\(head)\r\n\r\nabc\r\n--XX\r\n\(amount)\r\n--XX--\r\n"
  }

  private func mayHide(_ request: Request, _ source: KeySource = .form("key")) -> Bool {
    KeyPolicy(from: source).mayHide(in: ByteBuffer(bytes: request.body), request.head)
  }

  private func key(_ request: Request, _ source: KeySource = .form("key")) throws(Problem) -> String? {
    try request.key(KeyPolicy(from: source))
  }

  static let types = ["text/plain", "application/x-www-form-urlencoded", "application/octet-stream", nil]

  @Test(arguments: types) func `JSON of any type is read by its text, or may hide a key`(type: String?) throws
  {
    func request(_ body: [UInt8]) -> Request {
      guard let type else {
        var request = Request()
        request.body = body
        return request
      }
      return Request(type, body: body)
    }
    let source = KeySource.json("/key")
    let text = #"{"key":"abc"}"#
    #expect(try key(request(Array(text.utf8)), source) == "abc")
    #expect(!mayHide(request(Array(text.utf8)), source))
    let hidden: [[UInt8]] = [
      Array("\u{FEFF}\(text)".utf8), Array(" \(text) x".utf8), Array(#"{"key":"abc",}"#.utf8),
      Array(#"[{"key":"abc"} // a"#.utf8), text.utf16.flatMap { [UInt8($0), 0] },
      text.utf16.flatMap { [0, UInt8($0)] },
    ]
    for body in hidden {
      #expect(mayHide(request(body), source), "\(body)")
      var later = request(body)
      later.fields.append(("X-Key", "k"))
      #expect(throws: Problem.self) { try later.key(KeyPolicy(from: source, .header("x-key"))) }
    }
    for body in ["", "abc", "a=1&b=2", "<a/>", "\"abc", "1,"] {
      #expect(!mayHide(request(Array(body.utf8)), source), "\(body)")
    }
    #expect(!mayHide(Request("image/png", body: hidden[0]), source))
  }

  @Test(arguments: [
    // Folded, and lines that are none.
    "Content-Disposition: form-data;\r\n name=\"key\"", "Content-Disposition:\r\n\tform-data; name=\"key\"",
    "Content-Type: text/plain;\r\n charset=utf-8\r\nContent-Disposition: form-data; name=\"key\"",
    "Content-Disposition : form-data; name=\"key\"", " Content-Disposition: form-data; name=\"key\"",
    "X\r\nContent-Disposition: form-data; name=\"key\"",
    ": x\r\nContent-Disposition: form-data; name=\"key\"",
    "X: y\nContent-Disposition: form-data; name=\"key\"",
    "X: y\rContent-Disposition: form-data; name=\"key\"",
    "Content-Disposition: form-data; name=\"key\0\"",
    // None, several, or another.
    "Content-Type: text/plain", "",
    "Content-Disposition: form-data; name=\"other\"\r\nContent-Disposition: form-data; name=\"key\"",
    "Content-Disposition: form-data; name=\"key\"\r\ncontent-disposition: form-data; name=\"key\"",
    "Content-Disposition: attachment; name=\"key\"", "Content-Disposition: form-data",
    "Content-Disposition: name=\"key\"", "Content-Disposition: form-data name=\"key\"",
    "Content-Disposition: form-data, form-data; name=\"key\"",
    // Spaces around the sign, and behind the value.
    "Content-Disposition: form-data; name= \"key\"", "Content-Disposition: form-data; name =\"key\"",
    "Content-Disposition: form-data; name = key", "Content-Disposition: form-data; name=\"key\" ; x=y",
    // Repeated, in parts, unknown, or without a value.
    "Content-Disposition: form-data; name=\"other\"; name=\"key\"",
    "Content-Disposition: form-data; name=\"key\"; NAME=\"other\"",
    "Content-Disposition: form-data; name=\"other\"; name*=utf-8''key",
    "Content-Disposition: form-data; name*=utf-8''key; name=\"other\"",
    "Content-Disposition: form-data; name*0=\"ke\"; name*1=\"y\"",
    "Content-Disposition: form-data; name=\"other\"; x=\"; name=key\"",
    "Content-Disposition: form-data; name=\"key\";", "Content-Disposition: form-data; name",
    "Content-Disposition: form-data; name=", "Content-Disposition: form-data;; name=\"key\"",
    "Content-Disposition: form-data; filename=\"\"; name=\"key\"; filename=\"\"",
    // Quotes.
    "Content-Disposition: form-data; name=\"key", "Content-Disposition: form-data; name=\"key\\\"",
    "Content-Disposition: form-data; name='key'", "Content-Disposition: form-data; name=\"key\"x",
    "Content-Disposition: form-data; name=ke\"y\"", "Content-Disposition: form-data; name=key[]",
    "Content-Disposition: form-data; name=\"a\\\"; name=key; x=\\\"\"",
    "Content-Disposition: form-data; name=\"a; name=key\"",
    "Content-Disposition: form-data; name=\"=?utf-8?B?a2V5?=\"",
    // Extended values in other forms.
    "Content-Disposition: form-data; name*=key", "Content-Disposition: form-data; name*=utf-7''key",
    "Content-Disposition: form-data; name*=utf-8''%6", "Content-Disposition: form-data; name*=\"utf-8''key\"",
  ])
  func `a part whose head is not plain may be the key`(head: String) throws {
    let request = Request(Self.form, Self.body(head))
    #expect(try key(request) == nil)
    #expect(mayHide(request))
    // It need not be the part with the name.
    #expect(try key(request, .form("amount")) == nil)
    #expect(mayHide(request, .form("amount")))
    #expect(!mayHide(request, .json("/key")))
  }

  @Test(arguments: ["\n", "\n\n", "\r", "", "x", "\n ", "\r\n--X"])
  func `a boundary within a part may begin another one`(end: String) throws {
    let field = "Content-Disposition: form-data; name="
    let body = "--XX\r\n\(field)\"note\"\r\n\r\nhello\(end)--XX\r\n\(field)\"key\"\r\n\r\nabc\r\n--XX--\r\n"
    let request = Request(Self.form, body)
    #expect(try key(request) == nil)
    #expect(mayHide(request))
    // A line that begins like a delimiter is one to some.
    let longer = Request(Self.form, body.replacing("hello\(end)--XX\r", with: "hello\r\n--XXY\r"))
    #expect(try key(longer) == nil && mayHide(longer))
  }

  @Test(arguments: ["\r\n", "\r\n\r\n"], ["", "\r\n", "\r\n\r\n\r\n"])
  func `line ends around a form do not matter`(before: String, after: String) throws {
    let plain = "--XX\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nabc\r\n--XX--"
    #expect(try key(Request(Self.form, before + plain + after)) == "abc")
    #expect(try key(Request(Self.form, plain + after)) == "abc")
  }

  @Test(arguments: ["--XX--", "--XX--\r\n"])
  func `a form without parts hides nothing`(body: String) throws {
    #expect(try key(Request(Self.form, body)) == nil)
    #expect(!mayHide(Request(Self.form, body)))
  }

  @Test(arguments: [" key", "key ", "\u{FEFF}key"])
  func `a name that is the key to those who trim it may be the key`(name: String) throws {
    let request = Request(Self.form, Self.body("Content-Disposition: form-data; name=\"\(name)\""))
    #expect(try key(request) == nil)
    #expect(mayHide(request))
  }

  @Test func `the parameters of files that are standardised are no fault`() throws {
    let file = "Content-Disposition: form-data; name=\"f\"; filename=\"a\"; size=3; modification-date=\"x\""
    #expect(!mayHide(Request(Self.form, Self.body(file))))
    #expect(try key(Request(Self.form, Self.body(file)), .form("amount")) == "5")
  }

  @Test(arguments: [
    "Content-Disposition: form-data; name=\"key\"; filename=\"\"",
    "Content-Disposition: form-data; filename=\"a.txt\"; name=\"key\"",
    "Content-Disposition: form-data; name=\"key\"; filename*=utf-8''a.txt",
    "Content-Disposition: form-data; name=\"key\"; FileName=a",
    "Content-Disposition: form-data; name*=utf-8''key",
    "Content-Disposition: form-data; name*=UTF-8'en'%6bey",
    "Content-Disposition: form-data; name=\"k\\ey\"", "Content-Disposition: form-data; name=\"%6bey\"",
    "Content-Disposition: form-data; name=\"key\"\r\nContent-Transfer-Encoding: base64",
    "Content-Transfer-Encoding: quoted-printable\r\nContent-Disposition: form-data; name=\"key\"",
  ])
  func `a part that some take for the key may be the key`(head: String) throws {
    let request = Request(Self.form, Self.body(head))
    #expect(try key(request) == nil)
    #expect(mayHide(request))
    // The other fields are read.
    #expect(try key(request, .form("amount")) == "5")
    #expect(!mayHide(request, .form("amount")))
  }

  @Test(arguments: [
    // Browsers, curl, Go, and clients that put MIME's fields first.
    "Content-Disposition: form-data; name=\"key\"", "content-disposition: form-data; name=\"key\"",
    "Content-Type: text/plain; charset=UTF-8\r\nContent-Disposition: form-data; name=\"key\"",
    // Apache's client, OkHttp, aiohttp, .NET.
    "Content-Disposition: form-data; name=\"key\"\r\nContent-Type: text/plain; charset=ISO-8859-1\r\n"
      + "Content-Transfer-Encoding: 8bit",
    "Content-Disposition: form-data; name=\"key\"\r\nContent-Transfer-Encoding: binary\r\n"
      + "Content-Type: text/plain; charset=utf-8\r\nContent-Length: 3",
    "Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name=\"key\"",
    "Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name=key",
    "MIME-Version: 1.0\r\nContent-Transfer-Encoding: 7bit\r\nContent-Disposition:form-data;name=\"key\"",
  ])
  func `the key is read from the forms that clients send`(head: String) throws {
    let request = Request(Self.form, Self.body(head))
    #expect(try key(request) == "abc")
    #expect(!mayHide(request))
  }

  @Test(arguments: [
    "Content-Disposition: form-data; name=\"upload\"; filename=\"x.png\"\r\nContent-Type: image/png",
    // An empty choice of a browser.
    "Content-Disposition: form-data; name=\"upload\"; filename=\"\"\r\n"
      + "Content-Type: application/octet-stream",
    "Content-Disposition: form-data; name=\"upload\"; filename=\"a;b's %22c%22.png\"",
    "Content-Disposition: form-data; name=\"upload\"; filename=\"C:\\files\\x.png\"",
    // Go, aiohttp, .NET.
    "Content-Disposition: form-data; name=\"the \\\"upload\\\"\"; filename=\"a \\\"b\\\".png\"",
    "Content-Disposition: form-data; name=\"first\\ name\"",
    "Content-Type: text/plain\r\nContent-Disposition: form-data; name*=utf-8''caf%C3%A9",
    "Content-Disposition: form-data; name=upload; filename=x.png; filename*=utf-8''x.png",
    "Content-Disposition: form-data; name=\"upload\"; filename=\"=?utf-8?B?w6Q=?=\"; filename*=utf-8''%C3%A4",
    "Content-Disposition: form-data; name=\"upload\"; filename*=\"UTF-8''x.png\"",
    "Content-Disposition: form-data; name=\"caf\u{E9}\"; filename=\"\u{E9}.png\"",
    "Content-Disposition: form-data; name=\"items[0][key]\"",
    "Content-Disposition: form-data; name=\"upload\"; filename=\"x\"\r\nContent-Transfer-Encoding: base64",
  ])
  func `fields and files of other names are no keys`(head: String) throws {
    let request = Request(Self.form, Self.body(head))
    #expect(try key(request) == nil)
    #expect(!mayHide(request))
    #expect(try key(request, .form("amount")) == "5")
  }

  @Test func `a file beside the key does not count`() throws {
    let file = "Content-Disposition: form-data; name=\"amount\"; filename=\"\""
    let request = Request(Self.form, Self.body(file))
    #expect(try key(request, .form("amount")) == "5")
    #expect(!mayHide(request, .form("amount")))
  }

  @Test(arguments: [
    "+key=v", "%20key=v", "key%20=v", "%09key=v", "key%00x=v", "key%00", "a=1;key=v", "a=1;key=v;b=2",
    "a=1; key=v", "a=1&+key=v", ";key=v",
  ])
  func `a name that is the key to some readers of forms may be the key`(body: String) throws {
    let request = Request(Self.urlencoded, body)
    #expect(try key(request) == nil)
    #expect(mayHide(request))
  }

  @Test(arguments: [
    "", "a=1", "a=1;b=2", "keys=v", "a+key=v", "key+x=v", "a=key", "a=1;keys=v", "a=key;b", "key=", "&&",
    "a%3Bkey=v",
    "a=%3Bkey%3Dv", "%00key2=v",
  ])
  func `other names of a form hide nothing`(body: String) throws {
    let request = Request(Self.urlencoded, body)
    #expect(try key(request) == nil)
    #expect(!mayHide(request))
  }

  private static let urlencoded = "application/x-www-form-urlencoded"

  @Test(arguments: ["key=abc&amount=5", "amount=5&+key=abc", "a=1;key=abc"])
  func `pairs without a media type may be a form`(body: String) throws {
    var request = Request("", body)
    request.fields = []
    #expect(try key(request) == nil)
    #expect(mayHide(request))
    #expect(!mayHide(request, .form("currency")))
    request.fields = [("Content-Encoding", "gzip")]
    #expect(mayHide(request, .form("currency")))
    request.fields = [("Content-Type", "text/plain")]
    #expect(!mayHide(request))
  }

  @Test(arguments: [
    "application/x-amz-json-1.1", "text/plain", "application/octet-stream", urlencoded, form, "",
  ])
  func `a coded body of any type may be JSON`(type: String) {
    var request = Request(type, "\u{1f}\u{8b}")
    if type.isEmpty { request.fields = [] }
    #expect(!mayHide(request, .json("/key")))
    request.fields.append(("Content-Encoding", "gzip"))
    #expect(mayHide(request, .json("/key")) && !mayHide(request, .query("key")))
    request.fields = [("Content-Type", "Image/png"), ("Content-Encoding", "gzip")]
    #expect(!mayHide(request, .json("/key")))
  }

  @Test(
    arguments: [
      [0xEF, 0xBB, 0xBF, 0x7B], [0xFE, 0xFF, 0, 0x7B], [0xFF, 0xFE, 0x7B, 0], [0, 0x7B], [0x7B, 0, 0x22, 0],
      [0, 0, 0, 0x7B],
    ] as [[UInt8]])
  func `a body of any type but a picture may be JSON in another encoding`(bytes: [UInt8]) {
    var request = Request("", body: bytes)
    request.fields = []
    #expect(mayHide(request, .json("/key")) && !mayHide(request))
    request.fields = [("Content-Type", "application/octet-stream")]
    #expect(mayHide(request, .json("/key")))
    request.fields = [("Content-Type", "image/png")]
    #expect(!mayHide(request, .json("/key")))
  }

  @Test func `a composite key whose field is missing is hidden nowhere`() {
    var request = Request("application/json", "coded")
    request.fields.append(("Content-Encoding", "gzip"))
    let source = KeySource.composite([.json("/key"), .header("x-part")])
    #expect(!mayHide(request, source))
    request.fields.append(("X-Part", "a"))
    #expect(mayHide(request, source))
  }

  @Test func `a later source does not stand in for one that cannot be read`() throws {
    func key(_ sources: KeySource..., of request: Request) throws(Problem) -> String? {
      var policy = KeyPolicy(from: sources[0])
      policy.from = sources
      return try request.key(policy)
    }
    var request = Request("application/json", #"{"id":"a"}"#)
    request.fields.append(("Idempotency-Key", "b"))
    let header = KeySource.header("idempotency-key")
    #expect(try key(.json("/id"), header, of: request) == "a")
    #expect(try key(.json("/other"), header, of: request) == "b")
    #expect(try key(.form("other"), header, of: request) == "b")
    request.fields.append(("Content-Encoding", "gzip"))
    #expect(try key(header, .json("/id"), of: request) == "b")
    for sources in [
      [KeySource.json("/id"), header], [.json("/id"), .payload], [.composite([.json("/id")]), header],
    ] {
      #expect(throws: Problem.self) { try key(sources[0], sources[1], of: request) }
    }
    // Without a body nothing is hidden.
    request.body = []
    #expect(try key(.json("/id"), header, of: request) == "b")
  }

  @Test(arguments: ["multipart/mixed", "Multipart/Related", "multipart/x"])
  func `parts of another multipart type may be a form's`(type: String) throws {
    let request = Request(type + "; boundary=XX", Self.body("Content-Disposition: form-data; name=\"key\""))
    #expect(try key(request) == nil)
    #expect(mayHide(request) && !mayHide(request, .json("/key")))
  }

  @Test(arguments: [
    [urlencoded, urlencoded], [urlencoded, "application/json"], ["application/json", "application/json"],
    [urlencoded + ", application/json"], ["application/json; charset=utf-8, text/plain"],
    [form + ", text/plain"], ["text/plain;a=\"b"], [urlencoded + " x"], ["application/json text/plain"],
  ])
  func `several media types, or an unclear one, hide a key`(types: [String]) throws {
    func request(_ body: String) -> Request {
      var request = Request("", body)
      request.fields = types.map { ("Content-Type", $0) }
      return request
    }
    let pairs = request("key=abc&amount=5")
    for source in [KeySource.form("key"), .json("/key"), .composite([.form("key"), .query("a")])] {
      #expect(try key(pairs, source) == nil)
      #expect(mayHide(pairs, source))
    }
    for source in [KeySource.header("a"), .query("key")] { #expect(!mayHide(pairs, source)) }
    // Without a body there is nothing to hide in. JSON is read whatever its type.
    #expect(!mayHide(request("")))
    #expect(try key(request(#"{"key":"abc"}"#), .json("/key")) == "abc")
    // A source that comes first has the key.
    var keyed = pairs
    keyed.fields.append(("Idempotency-Key", "k"))
    #expect(try keyed.key(KeyPolicy(from: .header("idempotency-key"), .form("key"))) == "k")
    #expect(throws: Problem.self) { try keyed.key(KeyPolicy(from: .form("key"), .header("idempotency-key"))) }
  }

  @Test(arguments: [
    "multipart/form-data; boundary=\"X,X\"", "multipart/form-data;boundary=\"X,X\"; charset=\"a\\\"b\"",
  ])
  func `a comma between quotes makes no list`(type: String) throws {
    let request = Request(
      type, "--X,X\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nabc\r\n--X,X--\r\n")
    #expect(try key(request) == "abc")
    #expect(!mayHide(Request("text/plain;charset=utf-8", "key=abc")))
    #expect(!mayHide(Request("text/plain ; charset=utf-8", "key=abc"), .json("/key")))
  }
}
