import Mustache

enum ConsoleTemplates {
  private static let library: MustacheLibrary = {
    MustacheContentTypes.register(HTMLText(), named: HTMLText.name)
    var library = MustacheLibrary()
    for (name, text) in all {
      do {
        // Each template names its content type itself: a part begins with the library's own.
        try library.register("{{% CONTENT_TYPE: \(HTMLText.name)}}" + text, named: name)
      } catch {
        preconditionFailure("ConsoleTemplates: \(name) cannot be read: \(error)")
      }
    }
    return library
  }()

  private static let all: [String: String] = [
    "layout": layout, "now": now, "records": records, "record": record, "facts": facts, "rows": rows,
    "matches": matches, "bulk": bulk, "routes": routes, "live": live, "line": line, "audit": audit,
    "configuration": configuration, "login": login, "error": error, "search": search,
  ]

  static func render(_ view: View, _ name: String) -> String {
    guard let text = library.render(view, withTemplate: name) else {
      preconditionFailure("ConsoleTemplates: there is no template \(name)")
    }
    return text
  }
}

/// Text in HTML, within elements and quoted attributes. The library's own type goes by characters, and leaves a
/// quotation mark with a combining mark, which would end an attribute. This one goes by scalars. Control characters,
/// and those that change the direction of text, become visible.
struct HTMLText: MustacheContentType {
  static let name = "SCALARS"

  func escapeText(_ text: String) -> String { Self.escaped(text) }

  static func escaped(_ text: String) -> String {
    var result = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": result.append(contentsOf: "&amp;".unicodeScalars)
      case "<": result.append(contentsOf: "&lt;".unicodeScalars)
      case ">": result.append(contentsOf: "&gt;".unicodeScalars)
      case "\"": result.append(contentsOf: "&quot;".unicodeScalars)
      case "'": result.append(contentsOf: "&#39;".unicodeScalars)
      case "\n", "\t": result.append(scalar)
      case "\u{0}"..."\u{1F}", "\u{7F}"..."\u{9F}", "\u{200E}", "\u{200F}", "\u{202A}"..."\u{202E}",
        "\u{2066}"..."\u{2069}":
        result.append("\u{FFFD}")
      default: result.append(scalar)
      }
    }
    return String(result)
  }
}

extension ConsoleTemplates {
  static let layout = #"""
    <!doctype html>
    <html lang="en">
    <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>{{title}} · Semel</title>
    <link rel="stylesheet" href="{{root}}/style.css">
    <link rel="icon" href="{{root}}/icon.svg" type="image/svg+xml">
    <script src="{{root}}/console.js" defer></script>
    {{#refreshes}}
    <noscript><meta http-equiv="refresh" content="15"></noscript>
    {{/refreshes}}
    </head>
    <body class="page-{{page}}">
    <a class="skip" href="#main">Skip to the content</a>
    <header class="top">
    <a class="brand" href="{{root}}/"><img src="{{root}}/icon.svg" width="24" height="24" alt=""> Semel</a>
    {{#inside}}
    <nav aria-label="Pages"><ul>
    {{#links}}
    <li><a href="{{root}}{{path}}"{{#current}} aria-current="page"{{/current}}>{{name}}</a></li>
    {{/links}}
    </ul></nav>
    <p class="who"><span class="node">{{node}}</span>{{#reads_only}} <span class="pill">read-only</span>{{/reads_only}}</p>
    {{#has_login}}
    <form method="post" action="{{root}}/logout"><button class="quiet">Log out</button></form>
    {{/has_login}}
    {{/inside}}
    </header>
    <main id="main" tabindex="-1"{{#refreshes}} data-refreshes{{/refreshes}}>
    {{{main}}}
    </main>
    </body>
    </html>

    """#

  static let login = #"""
    <div class="narrow">
    <h1>Log in</h1>
    <p>This listener needs a token: the first line of the file that <code>admin.token_file</code> names.
    With that of <code>admin.read_token_file</code> you can look at everything and change nothing.</p>
    {{#refused}}
    <p class="notice bad" role="alert">This token is none of those configured. Nothing was changed.</p>
    {{/refused}}
    <form method="post" action="{{root}}/login" class="stack">
    <input type="hidden" name="to" value="{{to}}">
    <label for="token">Token</label>
    <input id="token" name="token" type="password" required autocomplete="current-password" autofocus>
    <button class="primary">Log in</button>
    </form>
    <p class="muted">By curl: <code>curl -H "Authorization: Bearer $TOKEN" …{{root}}/</code></p>
    </div>

    """#

  static let error = #"""
    <div class="narrow">
    <h1>{{title}}</h1>
    <p class="notice bad" role="alert">{{detail}}</p>
    <p class="muted">{{status}} {{phrase}}. Nothing else was changed.</p>
    <p><a href="{{root}}/">Back to <em>Now</em></a></p>
    </div>

    """#

  static let search = #"""
    <form method="post" action="{{root}}/records/search" class="search" role="search">
    <label for="search">Find a record</label>
    <input id="search" name="text" type="search" required autocomplete="off" spellcheck="false" value="{{text}}"
     placeholder="a key, a caller, a record's id or a digest from the log">
    <label for="kind" class="hidden">What it is</label>
    <select id="kind" name="kind">
    <option value="">key, id or digest</option>
    <option value="caller"{{#by_caller}} selected{{/by_caller}}>caller, as clients send it</option>
    </select>
    <button>Find</button>
    </form>

    """#
}

extension ConsoleTemplates {
  static let live = #"""
    <h1>Live</h1>
    <form method="get" action="{{root}}/live" class="filter">
    <label>Route <select name="route">
    <option value="">any</option>
    {{#route_names}}
    <option{{#selected}} selected{{/selected}}>{{name}}</option>
    {{/route_names}}
    </select></label>
    <label>Outcome <select name="outcome">
    <option value="">any</option>
    {{#outcomes}}
    <option{{#selected}} selected{{/selected}}>{{name}}</option>
    {{/outcomes}}
    </select></label>
    <button>Show</button>
    <button type="button" class="quiet" id="pause" hidden>Pause</button>
    </form>
    <p class="muted" id="live-state" role="status">The latest {{shown}} of the keyed, refused and shadowed requests of this
    node. <a href="">Load again</a></p>
    <div class="scroll" tabindex="0" role="group" aria-label="Table"><table>
    <thead><tr><th>Time</th><th>Method</th><th>Route</th><th class="num">Status</th><th>Outcome</th>
    <th class="num">Took</th><th>Details</th><th>Record</th></tr></thead>
    <tbody id="live" data-events="{{events}}">
    {{#lines}}
    {{>line}}
    {{/lines}}
    </tbody></table></div>
    {{#nothing}}
    <div class="empty" id="no-lines"><p>No request has come since the start, or none that this filter shows. Send one
    through the proxy:</p>
    <pre><code>curl -i -X POST http://PROXY/PATH -H 'Idempotency-Key: first-try' -d '{}'</code></pre></div>
    {{/nothing}}

    """#

  static let line = #"""
    <tr>
    <td><time>{{time}}</time></td>
    <td>{{method}}</td>
    <td>{{route_text}}</td>
    <td class="num">{{status_text}}</td>
    <td><span class="state {{tone}}">{{verdict}}</span></td>
    <td class="num">{{took}}</td>
    <td class="muted details">{{details}}</td>
    <td>{{#record}}<a href="{{root}}/records/{{record}}"><code>{{short_id}}</code></a>{{/record}}</td>
    </tr>

    """#

  static let audit = #"""
    <h1>Audit</h1>
    <p class="muted">The changes by this node since its start, the latest first. All of them, and those of other nodes,
    are in the logs under <code>"message":"audit"</code>.</p>
    {{#has_entries}}
    <div class="scroll" tabindex="0" role="group" aria-label="Table"><table>
    <thead><tr><th>Time</th><th>Change</th><th>Record</th><th>From</th><th>Reason</th><th>Details</th></tr></thead>
    <tbody>
    {{#entries}}
    <tr>
    <td><time>{{time}}</time></td>
    <td><strong>{{action}}</strong></td>
    <td>{{#record}}<a href="{{root}}/records/{{record}}"><code>{{short_id}}</code></a>{{/record}}</td>
    <td>{{from}}</td>
    <td class="details">{{reason_text}}</td>
    <td class="muted details">{{details}}{{#warning}}<br><strong>{{warning}}</strong>{{/warning}}</td>
    </tr>
    {{/entries}}
    </tbody></table></div>
    {{/has_entries}}
    {{^has_entries}}
    <div class="empty"><h2>Nobody has changed anything</h2>
    <p>What the console, <code>semel key</code> and the API change appears here, with its reason:</p>
    <pre><code>semel key resolve --id ID --not-applied</code></pre></div>
    {{/has_entries}}

    """#

  static let configuration = #"""
    <h1>Configuration</h1>
    {{#refusal}}
    <div class="notice bad" role="alert"><p>The reload at {{refused_at}} was refused. The configuration before stays in
    use.</p><ul>
    {{#reasons}}
    <li><code>{{.}}</code></li>
    {{/reasons}}
    </ul></div>
    {{/refusal}}
    <section class="card">
    {{>facts}}
    </section>
    <p class="muted">Secrets are left out. This is what <code>GET /v1/config</code> returns.</p>
    <pre class="document" tabindex="0" role="group" aria-label="The configuration in JSON"><code>{{document}}</code></pre>

    """#
}
