// The audit: who broke which lock, when, why, and whom it was taken from; who paused which job. Newest first.

import { read } from './api.js';
import { fill, h } from './dom.js';
import { redrawn } from './focus.js';
import { t } from './i18n.js';
import { mark, pages, person, when } from './parts.js';
import { keepFresh } from './refresh.js';
import { address } from './router.js';
import { empty } from './states.js';
import { plain, shown } from './text.js';

/** Shows it; the first page is kept fresh. */
export async function show({ room, place, signal }) {
  const body = h('div', { class: 'results' });
  const cursor = place.query.get('cursor') ?? '';
  const load = async () => {
    const page = await read('audit', { cursor, limit: 50 }, signal);
    redrawn(body, () => fill(body, page.entries.length ? table(page.entries) : none(page.note), pages('audit', cursor, page.next)));
  };
  await load();
  fill(room, h('div', { class: 'title' }, h('h1', {}, t('view.audit')), h('p', { class: 'quiet' }, t('audit.lead'))), body);
  if (!cursor) keepFresh({ load, every: 10_000, signal, concerns: (news) => news.how === 'broken' });
}

function none(note) {
  return empty('audit', t('empty.audit'), t('empty.audit.text'), "leasehold break NAME --id ID --reason 'stuck since noon'", note);
}

function table(entries) {
  const heads = ['at', 'action', 'name', 'by', 'reason', 'holder'].map((key) => h('th', { scope: 'col', class: key }, t(`audit.${key}`)));
  return h('div', { class: 'table-frame' }, h('table', { class: 'plain-table wide' }, h('thead', {}, h('tr', {}, heads)), h('tbody', {}, entries.map(row))));
}

const TONES = { break: 'alarm', pause: 'wait', resume: 'calm', forget: 'idle' };

function row(entry) {
  const { holder } = entry;
  const nobody = () => h('span', { class: 'quiet' }, t(entry.action === 'break' ? 'unknown' : 'action.nobody'));
  return h('tr', {}, cell('at', when(entry.at)), cell('action', act(entry)),
    cell('name', h('a', { href: address('locks', entry.name), 'data-key': `${entry.at} ${entry.action} ${entry.id ?? entry.name}` }, shown(entry.name))),
    cell('by', shown(entry.by)), cell('reason', shown(entry.reason)),
    cell('holder', holder ? [person(holder), holder.label && shown(holder.label, { class: 'label' })] : nobody()));
}

/** What was done; of a break whose answer was lost nobody knows whether it was. */
function act({ action, unsure }) {
  if (unsure) return [mark('wait', t('action.unsure')), h('span', { class: 'quiet small' }, t('action.unsure.text'))];
  return mark(TONES[action] ?? 'alarm', action in TONES ? t(`action.${action}`) : plain(action));
}

function cell(key, ...inside) {
  return h('td', { class: key, 'data-label': t(`audit.${key}`) }, h('span', { class: 'cell' }, inside));
}
