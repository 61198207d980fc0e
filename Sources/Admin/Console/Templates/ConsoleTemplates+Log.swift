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
