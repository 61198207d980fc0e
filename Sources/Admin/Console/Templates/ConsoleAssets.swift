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
