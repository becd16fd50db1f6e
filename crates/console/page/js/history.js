// How the last holds of a name ended, as their holders told it.

import { h } from './dom.js';
import { t } from './i18n.js';
import { length, mark, person, when } from './parts.js';
import { plain, shown } from './text.js';

const TONES = { released: 'calm', expired: 'alarm', broken: 'alarm', gone: 'alarm', max_hold: 'wait', shutdown: 'plain' };

/** The last holds, newest first; `note` says why a store keeps none. */
export function history(past, note) {
  if (!past.length) return h('p', { class: 'quiet' }, note ? plain(note) : t('history.none'));
  const heads = ['ended', 'who', 'waited', 'held', 'how', 'fence'].map((key) => h('th', { scope: 'col', class: key }, t(`history.${key}`)));
  return h('div', { class: 'table-frame flat' }, h('table', { class: 'plain-table' }, h('thead', {}, h('tr', {}, heads)), h('tbody', {}, past.map(row))));
}

function row(one) {
  const why = one.by || one.why ? h('span', { class: 'small quiet' }, [one.by && shown(one.by), one.by && one.why && ': ', one.why && shown(one.why)]) : null;
  return h('tr', {}, cell('ended', when(one.ended_at)), cell('who', person(one), one.label && shown(one.label, { class: 'label' })),
    cell('waited', length(one.waited_ms)), cell('held', length(one.held_ms)), cell('how', mark(TONES[one.how] ?? 'plain', t(`how.${one.how}`)), why),
    cell('fence', h('span', { class: 'mono small' }, one.fence_text)));
}

function cell(key, ...inside) {
  return h('td', { class: key, 'data-label': t(`history.${key}`) }, h('span', { class: 'cell' }, inside));
}
