extension ConsoleTemplates {
  static let record = #"""
    <p class="crumbs"><a href="{{root}}/records">Records</a></p>
    <h1>Record <code>{{short_id}}</code> <span class="state {{state}}">{{state_name}}</span></h1>
    {{#done}}
    <p class="notice good" role="status">{{done}}</p>
    {{/done}}
    {{#warning}}
    <p class="notice bad" role="alert">{{warning}}</p>
    {{/warning}}
    <section class="card answer">
    <h2>The next delivery</h2>
    <p class="lead">{{next_delivery}}</p>
    </section>
    <div class="columns">
    <section class="card">
    <h2>What is known</h2>
    {{>facts}}
    {{#mismatch}}
    <h3>The last other payload</h3>
    <p>At {{at}} a delivery was refused that differed in <code>{{differs}}</code>.</p>
    {{/mismatch}}
    </section>
    <section class="card">
    <h2>Timeline</h2>
    <ol class="timeline">
    {{#events}}
    <li class="{{kind}}"><time>{{time}}</time><p>{{text}}{{#detail}}<br><span class="muted">{{detail}}</span>{{/detail}}</p></li>
    {{/events}}
    </ol>
    <p class="muted">Deliveries are those of this node since {{since}}. Those of other nodes are in their logs, under
    <code>"record":"{{id}}"</code>.</p>
    </section>
    </div>
    {{#response}}
    <section class="card">
    <h2>The recorded response</h2>
    {{>facts}}
    {{#body}}
    <pre><code>{{body}}</code></pre>
    {{/body}}
    {{#offers_body}}
    <form method="post" action="{{root}}/records/{{id}}/body"><button>Show the body</button>
    <span class="muted">This is an audit entry.</span></form>
    {{/offers_body}}
    {{#no_body}}
    <p class="muted">{{no_body}}</p>
    {{/no_body}}
    </section>
    {{/response}}
    <section class="card acts" id="acts">
    <h2>{{#amends}}Undo{{/amends}}{{^amends}}Decide{{/amends}}</h2>
    {{#blocked}}
    <p class="muted">{{blocked}}</p>
    {{/blocked}}
    {{#resolves}}
    {{#amends}}
    <p>No delivery has used the decision yet, as far as this node knows. It can still be replaced by the other one.</p>
    {{/amends}}
    {{#danger}}
    <p class="notice bad">{{danger}}</p>
    {{/danger}}
    <details>
    <summary>The backend did carry it out: state its response</summary>
    <p>The next delivery gets the response that you state here, {{kept}}. Nothing reaches the backend.</p>
    <form method="post" action="{{root}}/records/{{id}}/resolve" class="stack">
    <input type="hidden" name="outcome" value="applied"><input type="hidden" name="attempt" value="{{attempt}}">
    {{#amends}}
    <input type="hidden" name="amend" value="true">
    {{/amends}}
    <label for="status">Status</label>
    <input id="status" name="status" required inputmode="numeric" pattern="[2-5][0-9][0-9]" size="4" placeholder="201">
    <label for="headers">Header fields, one a line</label>
    <textarea id="headers" name="headers" rows="2" spellcheck="false">Content-Type: application/json</textarea>
    <label for="body">Body</label>
    <textarea id="body" name="body" rows="4" spellcheck="false"></textarea>
    <label for="applied-reason">Reason, for the audit log</label>
    <input id="applied-reason" name="reason" required maxlength="300" autocomplete="off">
    <button class="danger">Resolve as applied</button>
    </form>
    </details>
    <details>
    <summary>The backend did not: let the next delivery run</summary>
    <p>The next delivery runs as attempt {{next_attempt}}. If the backend did carry the request out, it is then carried
    out twice.</p>
    <form method="post" action="{{root}}/records/{{id}}/resolve" class="stack">
    <input type="hidden" name="outcome" value="not_applied"><input type="hidden" name="attempt" value="{{attempt}}">
    {{#amends}}
    <input type="hidden" name="amend" value="true">
    {{/amends}}
    <label for="not-applied-reason">Reason, for the audit log</label>
    <input id="not-applied-reason" name="reason" required maxlength="300" autocomplete="off">
    <button class="danger">Resolve as not applied</button>
    </form>
    </details>
    {{/resolves}}
    {{#forgets}}
    <details>
    <summary>Forget the record</summary>
    <p>The next delivery runs as the first attempt, whatever its payload is; nothing remains of this record. To state what
    happened is safer, where that is possible. {{forget_danger}}</p>
    <form method="post" action="{{root}}/records/{{id}}/forget" class="stack">
    <label for="forget-reason">Reason, for the audit log</label>
    <input id="forget-reason" name="reason" required maxlength="300" autocomplete="off">
    <button class="danger">Forget it</button>
    </form>
    </details>
    {{/forgets}}
    </section>

    """#

  static let facts = #"""
    <dl>
    {{#facts}}
    <div><dt>{{name}}</dt><dd>{{#code}}<code>{{value}}</code>{{/code}}{{^code}}{{value}}{{/code}}</dd></div>
    {{/facts}}
    </dl>

    """#
}

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
