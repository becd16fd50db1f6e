// Search and filters over the table of locks. The server searches names and owners; kinds and order are of the page shown.

import { h } from './dom.js';
import { icon } from './icons.js';
import { t } from './i18n.js';
import { refine } from './router.js';

const PAUSE = 250;
const OVER = ['', '30s', '5m', '1h', '1d'];
const KINDS = ['', 'lock', 'shared', 'semaphore', 'latch'];

/** The fields; `search(changes)` is called for what the server has to find, `redraw` for what it has found already. */
export function filters(query, search, redraw, signal) {
  const field = h('input', { type: 'search', id: 'q', value: query.get('q') ?? '', placeholder: t('filter.q'), 'aria-label': t('filter.q'), autocomplete: 'off', spellcheck: 'false' });
  let timer = null;
  field.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(() => search({ q: field.value }), PAUSE);
  });
  slash(field, signal);
  const over = choice('over', OVER, query, (value) => search({ over: value }));
  const kind = choice('kind', KINDS, query, (value) => {
    refine({ kind: value });
    redraw();
  });
  return h('div', { class: 'filters', role: 'search' }, h('span', { class: 'search' }, icon('search'), field, h('kbd', { 'aria-hidden': 'true' }, '/')), over, kind);
}

function choice(name, values, query, chosen) {
  const options = values.map((value) => h('option', { value, selected: (query.get(name) ?? '') === value }, t(`filter.${name}.${value || 'any'}`)));
  const select = h('select', { id: name, 'aria-label': t(`filter.${name}`), onchange: () => chosen(select.value) }, options);
  return select;
}

/** A slash takes the reader to the search, from anywhere but another field. */
function slash(field, signal) {
  addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest?.('input, textarea, select, dialog')) return;
    event.preventDefault();
    field.focus();
    field.select();
  }, { signal });
}
