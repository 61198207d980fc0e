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
