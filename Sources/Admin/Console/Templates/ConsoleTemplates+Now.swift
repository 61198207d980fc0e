extension ConsoleTemplates {
  static let now = #"""
    <h1>Now</h1>
    <ul class="answers">
    {{#answers}}
    <li class="card {{tone}}"><h2>{{question}}</h2><p class="value">{{value}}</p><p class="muted">{{detail}}</p></li>
    {{/answers}}
    </ul>
    {{>search}}
    <section class="card">
    <h2>Unknown outcomes</h2>
    {{#fault}}
    <p class="notice bad" role="alert">The store cannot be walked: {{fault}}</p>
    {{/fault}}
    {{#walking}}
    <p class="muted">The open records are being counted. On a large store that takes minutes; load the page again.</p>
    {{/walking}}
    {{#has_groups}}
    <div class="scroll" tabindex="0" role="group" aria-label="Table"><table>
    <caption>By cause, route and upstream. Counted {{counted}}.</caption>
    <thead><tr><th>Cause</th><th>Route</th><th>Upstream</th><th class="num">Records</th><th class="num">Oldest</th>
    <th>One of them</th><th>What to do</th></tr></thead>
    <tbody>
    {{#groups}}
    <tr>
    <td><code>{{cause}}</code></td>
    <td>{{group_route}}</td>
    <td>{{upstream}}</td>
    <td class="num">{{count}}</td>
    <td class="num">{{oldest}}</td>
    <td><a href="{{root}}/records/{{sample}}"><code>{{short_sample}}</code></a></td>
    <td><a href="{{root}}/records?{{query}}">Show them</a> <span class="muted">runbook: {{runbook}}</span></td>
    </tr>
    {{/groups}}
    </tbody></table></div>
    {{#has_rows}}
    <h3>The oldest</h3>
    {{>rows}}
    {{/has_rows}}
    {{/has_groups}}
    {{#nothing}}
    <p class="empty">No outcome is unknown. {{counted_text}}</p>
    {{/nothing}}
    </section>
    <section class="card">
    <h2>The last five minutes</h2>
    {{#has_charts}}
    {{{legend}}}
    <div class="charts">
    {{#charts}}
    <figure><figcaption><a href="{{root}}/routes#{{anchor}}">{{route_text}}</a> <span class="muted">{{total}}</span></figcaption>
    {{{chart}}}
    {{{numbers}}}
    </figure>
    {{/charts}}
    </div>
    {{/has_charts}}
    {{^has_charts}}
    <div class="empty"><p>No request with a key has come yet. Send one through the proxy:</p>
    <pre><code>curl -i -X POST http://PROXY/PATH -H 'Idempotency-Key: first-try' -d '{}'</code></pre></div>
    {{/has_charts}}
    </section>
    <section class="card">
    <h2>What it stands on</h2>
    {{>facts}}
    <ul class="lines">
    {{#lines}}
    <li class="{{tone}}">{{text}}</li>
    {{/lines}}
    </ul>
    </section>

    """#

  static let routes = #"""
    <h1>Routes</h1>
    {{#has_routes}}
    {{{legend}}}
    {{#routes}}
    <section class="card" id="{{anchor}}">
    <h2>{{route_text}} {{#shadowed}}<span class="pill">shadowed</span>{{/shadowed}}{{#gone}}<span class="pill">not configured any more</span>{{/gone}}</h2>
    {{#warnings}}
    <p class="notice {{tone}}">{{text}}</p>
    {{/warnings}}
    <div class="columns">
    <div>
    <h3>The last hour</h3>
    {{{chart}}}
    {{{numbers}}}
    <h3>Since the start</h3>
    {{{share}}}
    <p>{{shares_text}}</p>
    {{#has_refusals}}
    <h3>Refusals</h3>
    <table class="small"><tbody>
    {{#refusals}}
    <tr><th scope="row"><code>{{reason}}</code></th><td class="num">{{count}}</td></tr>
    {{/refusals}}
    </tbody></table>
    {{/has_refusals}}
    </div>
    <div>
    <h3>Time by phase</h3>
    <div class="scroll" tabindex="0" role="group" aria-label="Table"><table class="small">
    <thead><tr><th>Phase</th><th class="num">Requests</th><th class="num">Mean</th><th class="num">Half within</th>
    <th class="num">99 % within</th><th>From 25 µs to 60 s</th></tr></thead>
    <tbody>
    {{#phases}}
    <tr><th scope="row">{{phase}}</th><td class="num">{{count}}</td><td class="num">{{mean}}</td><td class="num">{{half}}</td>
    <td class="num">{{most}}</td><td>{{{bars}}}</td></tr>
    {{/phases}}
    </tbody></table></div>
    {{#has_policy}}
    <h3>Policy</h3>
    {{>facts}}
    {{/has_policy}}
    </div>
    </div>
    </section>
    {{/routes}}
    {{/has_routes}}
    {{^has_routes}}
    <div class="empty"><h2>No route is configured</h2><p>Every request passes through. <code>semel init --help</code></p></div>
    {{/has_routes}}

    """#
}
