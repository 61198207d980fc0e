extension ConsoleAssets {
  /// A grid of eight pixels. Outcomes have one colour on all pages, and words or hatching beside it.
  static let style = #"""
    :root {
      color-scheme: light dark;
      --page: #f6f7f9; --card: #fff; --ink: #1b2330; --muted: #566072; --line: #dde1e8; --accent: #1f5fbf;
      --accent-ink: #fff; --good: #1c6b3f; --good-bg: #e5f4ea; --bad: #a3231f; --bad-bg: #fdeceb; --warn: #7a4b00;
      --warn-bg: #fff3dc;
      --executed: #2f6fd0; --replayed: #2a9d78; --waited: #8a63c9; --refused: #c77d0a; --unknown: #c2322d;
    }
    @media (prefers-color-scheme: dark) {
      :root {
        --page: #12161d; --card: #1a2029; --ink: #e6eaf1; --muted: #a2adbd; --line: #2f3845; --accent: #7fb0ff;
        --accent-ink: #0d1522; --good: #7fd6a2; --good-bg: #16301f; --bad: #ff9d98; --bad-bg: #3a1c1c;
        --warn: #f3c06a; --warn-bg: #352913;
        --executed: #6fa2f2; --replayed: #4fc49c; --waited: #b295e8; --refused: #e6a440; --unknown: #f0716b;
      }
    }
    * { box-sizing: border-box; }
    html { font: 16px/1.5 system-ui, sans-serif; font-variant-numeric: tabular-nums; -webkit-text-size-adjust: 100%; }
    body { margin: 0; background: var(--page); color: var(--ink); }
    main { max-width: 80rem; margin: 0 auto; padding: 1.5rem 1.5rem 4rem; }
    main:focus { outline: none; }
    h1 { font-size: 1.625rem; line-height: 1.25; font-weight: 650; letter-spacing: -.01em; margin: .5rem 0 1.25rem; }
    h2 { font-size: 1.0625rem; line-height: 1.4; font-weight: 650; margin: 0 0 .75rem; }
    h3 { font-size: .9375rem; font-weight: 650; margin: 1.5rem 0 .5rem; }
    p { margin: 0 0 .75rem; max-width: 46rem; }
    a { color: var(--accent); text-underline-offset: .15em; }
    code, pre { font-family: ui-monospace, "SFMono-Regular", "DejaVu Sans Mono", monospace; font-size: .875em; }
    pre { background: var(--page); border: 1px solid var(--line); border-radius: 6px; padding: .75rem 1rem; overflow: auto; }
    pre.document { background: var(--card); max-height: none; }
    :focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
    .skip { position: absolute; left: -100vw; background: var(--card); padding: .5rem 1rem; z-index: 2; }
    .skip:focus { left: 1rem; top: .5rem; }
    .hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
    .muted { color: var(--muted); font-size: .875rem; }
    .lead { font-size: 1.125rem; }

    .top { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem 1.5rem; padding: .5rem 1.5rem;
      background: var(--card); border-bottom: 1px solid var(--line); }
    .brand { display: flex; align-items: center; gap: .5rem; font-weight: 700; color: inherit; text-decoration: none; }
    .top nav { flex: 1 1 auto; }
    .top ul { display: flex; flex-wrap: wrap; gap: .25rem; list-style: none; margin: 0; padding: 0; }
    .top li a { display: block; padding: .375rem .75rem; border-radius: 6px; color: var(--muted); text-decoration: none; }
    .top li a:hover { background: var(--page); color: var(--ink); }
    .top li a[aria-current] { color: var(--accent); font-weight: 650; box-shadow: inset 0 -2px var(--accent);
      border-radius: 6px 6px 0 0; }
    .who { margin: 0; font-size: .875rem; color: var(--muted); }
    .pill { display: inline-block; font-size: .8125rem; font-weight: 500; padding: 0 .5rem; border: 1px solid var(--line);
      border-radius: 1rem; color: var(--muted); }

    .card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1.25rem 1.5rem;
      margin: 0 0 1.5rem; }
    .columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 0 1.5rem;
      align-items: start; }
    .columns > * { min-width: 0; }
    .narrow { max-width: 40rem; margin: 1rem auto; }
    .answers { display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: 1rem; list-style: none;
      padding: 0; margin: 0 0 1.5rem; }
    .answers .card { margin: 0; border-top: 4px solid var(--line); }
    .answers h2 { font-size: .875rem; font-weight: 500; color: var(--muted); margin: 0 0 .25rem; }
    .answers .value { font-size: 1.5rem; font-weight: 650; line-height: 1.25; margin: 0 0 .25rem; }
    .answers .good { border-top-color: var(--good); } .answers .good .value { color: var(--good); }
    .answers .warn { border-top-color: var(--warn); } .answers .warn .value { color: var(--warn); }
    .answers .bad { border-top-color: var(--bad); } .answers .bad .value { color: var(--bad); }
    .answers .muted, .answers p:last-child { margin: 0; }
    .answer { border-left: 4px solid var(--accent); }
    .answer .lead { margin: 0; max-width: 60rem; }

    .scroll { overflow-x: auto; margin: 0 0 1rem; }
    table { border-collapse: collapse; width: 100%; font-size: .9375rem; }
    caption { text-align: left; color: var(--muted); font-size: .875rem; padding: 0 0 .5rem; }
    th, td { text-align: left; vertical-align: top; padding: .5rem .75rem .5rem 0; border-bottom: 1px solid var(--line); }
    thead th { font-size: .8125rem; font-weight: 500; color: var(--muted); white-space: nowrap; }
    tbody th { font-weight: 400; }
    tbody tr:hover { background: color-mix(in srgb, var(--accent) 6%, transparent); }
    .num { text-align: right; white-space: nowrap; } .num + :not(.num) { padding-left: 1rem; }
    td time, td code { white-space: nowrap; }
    .details { min-width: 16rem; }
    table.small { font-size: .875rem; } table.small th, table.small td { padding: .25rem .75rem .25rem 0; }

    dl { margin: 0; }
    dl > div { display: grid; grid-template-columns: 11rem 1fr; gap: .25rem 1rem; padding: .375rem 0;
      border-bottom: 1px solid var(--line); }
    dl > div:last-child { border-bottom: 0; }
    dt { color: var(--muted); font-size: .875rem; } dd { margin: 0; overflow-wrap: anywhere; }
    .lines { list-style: none; padding: 0; margin: 1rem 0 0; font-size: .9375rem; }
    .lines li { padding: .25rem 0 .25rem 1.25rem; position: relative; overflow-wrap: anywhere; }
    .lines li::before { content: "●"; position: absolute; left: 0; color: var(--good); font-size: .75rem; top: .4rem; }
    .lines li.bad { color: var(--bad); } .lines li.bad::before { content: "▲"; color: var(--bad); }

    .timeline { list-style: none; margin: 0 0 1rem; padding: 0 0 0 1.25rem; border-left: 2px solid var(--line); }
    .timeline li { position: relative; padding: 0 0 .75rem; }
    .timeline li::before { content: ""; position: absolute; left: -1.625rem; top: .5rem; width: .625rem; height: .625rem;
      border-radius: 50%; background: var(--accent); border: 2px solid var(--card); }
    .timeline li.lost::before { background: var(--unknown); border-radius: 0; }
    .timeline li.later::before { background: var(--card); border-color: var(--muted); }
    .timeline time { font-size: .8125rem; color: var(--muted); } .timeline p { margin: 0; }

    .state { display: inline-block; font-size: .8125rem; font-weight: 600; padding: .0625rem .5rem; border-radius: 4px;
      background: var(--page); border: 1px solid var(--line); color: var(--ink); white-space: nowrap; }
    h1 .state { font-size: .9375rem; vertical-align: middle; letter-spacing: 0; }
    .state.unknown, .state.lost, .state.unreadable, .state.bad { color: var(--bad); background: var(--bad-bg); border-color: currentColor; }
    .state.completed, .state.good { color: var(--good); background: var(--good-bg); border-color: transparent; }
    .state.in_flight, .state.refused, .state.warn { color: var(--warn); background: var(--warn-bg); border-color: transparent; }
    .notice { border: 1px solid var(--line); border-left-width: 4px; border-radius: 6px; padding: .625rem 1rem;
      max-width: none; background: var(--card); }
    .notice.good { border-color: var(--good); background: var(--good-bg); }
    .notice.bad { border-color: var(--bad); background: var(--bad-bg); }
    .notice.warn { border-color: var(--warn); background: var(--warn-bg); }
    .empty { color: var(--muted); padding: 1rem 0; } .empty h2 { color: var(--ink); }
    .crumbs { margin: 0; font-size: .875rem; }

    input, select, textarea, button, .button { font: inherit; color: inherit; background: var(--card);
      border: 1px solid color-mix(in srgb, var(--muted) 70%, var(--line)); border-radius: 6px; padding: .375rem .75rem; min-height: 2.375rem; }
    button, .button { cursor: pointer; font-weight: 550; display: inline-block; text-decoration: none; }
    button:hover, .button:hover { border-color: var(--accent); color: var(--accent); }
    button.primary { background: var(--accent); border-color: var(--accent); color: var(--accent-ink); }
    button.danger { background: var(--bad-bg); border-color: var(--bad); color: var(--bad); }
    button.quiet { background: none; }
    ::placeholder { color: var(--muted); opacity: 1; }
    textarea { width: 100%; font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .875rem; }
    .filter, .search { display: flex; flex-wrap: wrap; align-items: end; gap: .75rem 1rem; margin: 0 0 1.5rem; }
    .search { align-items: center; } .search label { flex: none; } .search label:first-child { font-weight: 550; }
    .search input { flex: 1 1 20rem; min-width: 0; }
    .filter label { font-size: .875rem; color: var(--muted); display: grid; gap: .25rem; }
    .filter label > * { color: var(--ink); }
    .stack { display: grid; gap: .375rem; justify-items: start; max-width: 36rem; margin: 0 0 1rem; }
    .stack label { font-size: .875rem; color: var(--muted); margin-top: .5rem; }
    .stack input:not([size]) { width: 100%; } .stack button { margin-top: 1rem; }
    .card > .filter:last-child { margin: 0; }
    details { border-top: 1px solid var(--line); padding: .75rem 0; } details:last-child { padding-bottom: 0; }
    summary { cursor: pointer; font-weight: 550; } summary + * { margin-top: .75rem; }

    .legend { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; list-style: none; padding: 0; margin: 0 0 1rem;
      font-size: .875rem; color: var(--muted); }
    .legend svg { width: .875rem; height: .875rem; vertical-align: -.1em; margin-right: .375rem; }
    .charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 22rem), 1fr)); gap: 1.5rem; }
    figure { margin: 0; min-width: 0; } figcaption { font-weight: 550; margin: 0 0 .25rem; }
    svg.chart { display: block; width: 100%; height: auto; }
    svg text { fill: var(--muted); font-size: 11px; font-family: system-ui, sans-serif; }
    svg .axis { stroke: var(--line); fill: none; }
    .s-executed { fill: var(--executed); } .s-replayed { fill: var(--replayed); } .s-waited { fill: var(--waited); }
    .s-refused { fill: var(--refused); } .s-unknown { fill: var(--unknown); } .s-bars { fill: var(--executed); }
    .hatch { stroke: var(--card); stroke-width: 1.5; }
    figure details, .columns > div > details { border: 0; padding: .25rem 0; font-size: .875rem; }
    figure summary { font-weight: 400; color: var(--muted); }

    @media (max-width: 40rem) {
      main { padding: 1rem 1rem 3rem; } .top { padding: .5rem 1rem; } .card { padding: 1rem; }
      .top nav { order: 3; flex-basis: 100%; } .top ul { gap: 0; margin: 0 -.5rem; } .top li a { padding: .375rem .5rem; }
      dl > div { grid-template-columns: 1fr; gap: 0; } h1 { font-size: 1.375rem; }
      .who { margin-left: auto; }
      .answers { grid-template-columns: 1fr; gap: .75rem; }
    }
    @media (prefers-reduced-motion: no-preference) { a, button { transition: color .1s, border-color .1s; } }

    """#
}

enum ConsoleAssets {
  static let icon = #"""
    <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><rect width="24" height="24" rx="6" fill="#1f5fbf"/>
    <path d="M7 12.5l3.2 3.2L17 8.5" fill="none" stroke="#fff" stroke-width="2.6" stroke-linecap="round" stroke-linejoin="round"/></svg>

    """#

  /// Follows the log on *Live*, and renews the pages that show the present. Everything works without it.
  static let script = #"""
    'use strict';
    const keptLines = 300;

    function follow(table) {
      const state = document.getElementById('live-state'), pause = document.getElementById('pause');
      let source = null;
      const show = text => { state.textContent = text; };
      function open() {
        source = new EventSource(table.dataset.events);
        source.onopen = () => show('Following the log.');
        source.onerror = () => show('The connection is lost; trying again.');
        source.addEventListener('lines', event => {
          const part = document.createElement('template');
          part.innerHTML = '<table><tbody>' + event.data + '</tbody></table>';
          document.getElementById('no-lines')?.remove();
          table.prepend(...part.content.querySelectorAll('tr'));
          while (table.rows.length > keptLines) table.lastElementChild.remove();
        });
        source.addEventListener('omitted', event => show('Following the log; ' + event.data + ' lines were left out.'));
        source.addEventListener('full', () => {
          source.close();
          show('Too many pages follow this node. Load again to see more.');
        });
      }
      pause.hidden = false;
      pause.addEventListener('click', () => {
        if (source) { source.close(); source = null; show('Paused.'); } else { open(); }
        pause.textContent = source ? 'Pause' : 'Go on';
      });
      open();
    }

    async function renew(main) {
      const isBusy = document.hidden || main.contains(document.activeElement) && document.activeElement !== main
        || main.querySelector('details[open]') || String(getSelection());
      if (isBusy) return;
      try {
        const response = await fetch(location.href, {headers: {'Accept': 'text/html'}});
        if (!response.ok) return;
        const page = new DOMParser().parseFromString(await response.text(), 'text/html');
        const fresh = page.getElementById('main');
        if (fresh) main.replaceChildren(...fresh.childNodes);
      } catch { /* The next time. */ }
    }

    const table = document.getElementById('live');
    if (table && window.EventSource) follow(table);
    const main = document.querySelector('main[data-refreshes]');
    if (main) setInterval(renew, 5000, main);

    """#
}
