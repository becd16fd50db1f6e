// The rows of the table: a name, who holds it, for how long, what is left of the lease, who waits. Columns sort what is on
// this page. On a phone each row is a card.

import { h } from './dom.js';
import { icon } from './icons.js';
import { count } from './format.js';
import { t } from './i18n.js';
import { age, kindOf, label, leaseBar, person, stateOf } from './parts.js';
import { address } from './router.js';
import { shown } from './text.js';

const COLUMNS = ['name', 'state', 'holder', 'held', 'lease', 'waiters'];

/** What each column sorts by. */
const BY = {
  name: (lock) => lock.name,
  state: (lock) => (lock.holders.length ? 0 : 2) + (lock.waiters.length ? 0 : 1),
  holder: (lock) => (lock.holders[0] ? `${lock.holders[0].program} ${lock.holders[0].host}` : '\uffff'),
  held: (lock) => -Math.max(-1, ...lock.holders.map((holder) => holder.held_ms)),
  lease: (lock) => Math.min(Infinity, ...lock.holders.map((holder) => holder.expires_in_ms)),
  waiters: (lock) => -lock.waiters.length,
};

/** The rows in the order asked for: a column's name, or `-` and its name for the reverse; else as the store gave them. */
export function sorted(locks, sort) {
  const column = sort?.replace(/^-/, '');
  const key = BY[column];
  if (!key) return locks;
  const sign = sort.startsWith('-') ? -1 : 1;
  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  return [...locks].sort((a, b) => sign * compare(key(a), key(b)));
}

/** The table; `order(sort)` is called when a head is pressed. */
export function table(locks, sort, order) {
  const head = h('tr', {}, COLUMNS.map((column) => columnHead(column, sort, order)));
  const body = h('tbody', { onkeydown: walk }, locks.map(row));
  return h('div', { class: 'table-frame' }, h('table', { class: 'locks' }, h('caption', { class: 'for-ears' }, t('view.locks')), h('thead', {}, head), body));
}

function columnHead(column, sort, order) {
  const on = sort === column ? 'ascending' : sort === `-${column}` ? 'descending' : null;
  const next = on === 'ascending' ? `-${column}` : on === 'descending' ? '' : column;
  const button = h('button', { class: 'bare', type: 'button', 'data-key': `sort-${column}`, title: t('sort.title'), onclick: () => order(next) },
    t(`column.${column}`), on && icon(on === 'ascending' ? 'up' : 'down'));
  return h('th', { scope: 'col', class: column, 'aria-sort': on ?? 'none' }, button);
}

function row(lock) {
  const [first, ...others] = [...lock.holders].sort((a, b) => a.expires_in_ms - b.expires_in_ms);
  const more = others.length ? h('span', { class: 'more', title: t('holders.more') }, `+${count(others.length)}`) : null;
  return h('tr', {},
    h('th', { scope: 'row', class: 'name' }, h('a', { href: address('locks', lock.name), 'data-key': lock.name }, shown(lock.name)), h('span', { class: 'kind' }, kindOf(lock))),
    cell('state', stateOf(lock)),
    cell('holder', first ? [person(first), more, label(first)] : h('span', { class: 'quiet' }, '–')),
    cell('held', first ? age(first.held_ms, first) : '–'),
    cell('lease', first ? leaseBar(first) : '–'),
    cell('waiters', lock.waiters.length ? h('strong', {}, count(lock.waiters.length)) : h('span', { class: 'quiet' }, '0')));
}

function cell(column, ...inside) {
  return h('td', { class: column, 'data-label': t(`column.${column}`) }, h('span', { class: 'cell' }, inside));
}

/** Up and down go from name to name. */
function walk(event) {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const row = event.target.closest('tr');
  if (!by || !row) return;
  const next = by > 0 ? row.nextElementSibling : row.previousElementSibling;
  next?.querySelector('a')?.focus();
  event.preventDefault();
}
