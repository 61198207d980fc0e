extension ConsoleTemplates {
  static let records = #"""
    <h1>Records</h1>
    {{>search}}
    <form method="get" action="{{root}}/records" class="filter">
    <label>State <select name="state">
    {{#states}}
    <option value="{{value}}"{{#selected}} selected{{/selected}}>{{name}}</option>
    {{/states}}
    </select></label>
    <label>Route <select name="route">
    <option value="">any</option>
    {{#route_names}}
    <option{{#selected}} selected{{/selected}}>{{name}}</option>
    {{/route_names}}
    </select></label>
    <label>Older than <input name="older" inputmode="numeric" pattern="[0-9]+(s|m|h|d)?" value="{{older}}"
     placeholder="15m" size="6"></label>
    <button>Show</button>
    </form>
    {{#has_rows}}
    {{>rows}}
    {{/has_rows}}
    {{^has_rows}}
    <div class="empty">
    <h2>{{empty}}</h2>
    <p>Records are open while a request runs, and when its outcome is not known. Those that have ended are found above,
    by key, caller or id. To make one, send a request with a key twice:</p>
    <pre><code>curl -i -X POST http://PROXY/PATH -H 'Idempotency-Key: first-try' -d '{}'</code></pre>
    </div>
    {{/has_rows}}
    {{#next}}
    <p><a class="button" href="{{root}}/records?{{next}}">Walk on through the store</a></p>
    {{/next}}
    {{#bulk}}
    <section class="card">
    <h2>Resolve many as not applied</h2>
    <p>Of one route and age, at most {{max}} at once. They are counted first, and nothing changes before you have typed
    their number.</p>
    <form method="post" action="{{root}}/records/bulk" class="filter">
    <label>Route <select name="route" required>
    {{#route_names}}
    <option{{#selected}} selected{{/selected}}>{{name}}</option>
    {{/route_names}}
    </select></label>
    <label>Unknown for longer than <input name="older" required inputmode="numeric" pattern="[0-9]+(s|m|h|d)?"
     value="{{older}}" placeholder="15m" size="6"></label>
    <button>Count them</button>
    </form>
    </section>
    {{/bulk}}

    """#

  static let rows = #"""
    <div class="scroll" tabindex="0" role="group" aria-label="Table"><table>
    {{#caption}}
    <caption>{{caption}}</caption>
    {{/caption}}
    <thead><tr><th>State</th><th>Route</th><th class="num">Age</th><th>Cause</th><th class="num">Attempt</th>
    <th>Key</th><th>Caller</th><th>Record</th></tr></thead>
    <tbody>
    {{#rows}}
    <tr>
    <td><span class="state {{state}}">{{state_name}}</span></td>
    <td>{{route_text}}</td>
    <td class="num">{{age}}</td>
    <td>{{cause_text}}</td>
    <td class="num">{{attempt_text}}</td>
    <td><code>{{key_text}}</code></td>
    <td><code>{{caller_text}}</code></td>
    <td><a href="{{root}}/records/{{id}}"><code>{{short_id}}</code></a></td>
    </tr>
    {{/rows}}
    </tbody></table></div>

    """#

  static let matches = #"""
    <h1>Search</h1>
    {{>search}}
    {{#has_rows}}
    {{>rows}}
    {{/has_rows}}
    {{^has_rows}}
    <div class="empty">
    <h2>{{empty}}</h2>
    <p>A record is found by the key that the client sent, by the caller where a route knows callers by one part, by the
    43 characters of <code>Idempotency-Request-Id</code> (<code>record</code> in the log), or by the eight digits of
    <code>key</code> or <code>caller</code> in the log. Other parts: <code>semel key show --help</code>.</p>
    </div>
    {{/has_rows}}
    {{#next}}
    <form method="post" action="{{root}}/records/search">
    <input type="hidden" name="text" value="{{text}}"><input type="hidden" name="kind" value="{{kind}}">
    <input type="hidden" name="cursor" value="{{next}}">
    <p>A part of the store was searched. <button>Search on</button></p>
    </form>
    {{/next}}

    """#

  static let bulk = #"""
    <div class="narrow">
    <h1>Resolve many as not applied</h1>
    <p class="lead">{{lead}}</p>
    {{#has_plan}}
    <p><strong>What the next deliveries get:</strong> each of these {{count}} requests runs again, as a further attempt,
    when its client sends it again. If the backend did carry one of them out, it is then carried out twice.</p>
    <p>The oldest of them: <a href="{{root}}/records/{{sample}}"><code>{{sample}}</code></a>. A record of which another
    attempt is made until then is left as it is.</p>
    {{#more}}
    <p class="notice">There are more than {{count}}. Those left are counted again afterwards.</p>
    {{/more}}
    <form method="post" action="{{root}}/records/bulk/confirm" class="stack">
    <input type="hidden" name="plan" value="{{plan}}">
    <label for="number">Type their number, {{count}}</label>
    <input id="number" name="number" required inputmode="numeric" autocomplete="off" size="8">
    <label for="reason">Reason, for the audit log</label>
    <input id="reason" name="reason" required maxlength="300" autocomplete="off">
    <button class="danger">Resolve them as not applied</button>
    </form>
    {{/has_plan}}
    <p><a href="{{root}}/records?state=unknown">Back to the unknown records</a></p>
    </div>

    """#
}
