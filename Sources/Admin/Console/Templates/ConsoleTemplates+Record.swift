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
