// The table of locks. One page of names at a time, by the store's own cursor, so a hundred thousand locks cost no more than a
// hundred. Search, filters, order and cursor are in the address.

import { read } from './api.js';
import { fill, h } from './dom.js';
import { filters } from './filters.js';
import { redrawn } from './focus.js';
import { count } from './format.js';
import { t } from './i18n.js';
import { icon } from './icons.js';
import { keepFresh } from './refresh.js';
import { address, go, here, refine } from './router.js';
import { empty, trouble } from './states.js';
import { sorted, table } from './table.js';

const EVERY = 5000;
const LIMIT = 100;
/** How often we look on by ourselves while a search has found nothing yet. */
const PATIENCE = 8;
/** The cursors of the pages before this one, as far as we came through them. */
let trail = [];

/** Shows it, and keeps it fresh. */
export async function show(context) {
  const { room, signal } = context;
  const results = h('div', { class: 'results' });
  const state = { page: null, results };
  state.order = (sort) => {
    refine({ sort });
    redrawn(results, () => draw(state));
  };
  const load = async (again = null) => {
    state.page = await pageOf(here().query, signal, again);
    redrawn(results, () => draw(state));
  };
  const changed = (changes) => {
    trail = [];
    refine({ ...changes, cursor: '' });
    load().catch((problem) => signal.aborted || fill(results, trouble(problem, () => changed({}))));
  };
  if (!here().query.get('cursor')) trail = [];
  fill(room, h('div', { class: 'title' }, h('h1', {}, t('view.locks')), h('p', { class: 'quiet' }, t('locks.lead'))),
    filters(here().query, changed, () => redrawn(results, () => draw(state)), signal), results);
  fill(results, h('p', { class: 'quiet', role: 'status' }, t('loading')));
  await load();
  keepFresh({ load: () => load(state.page), every: EVERY, signal });
}

/**
 * One page; a search that finds nothing looks a few pages further before it says so. Nobody asks for that when a page is only
 * read again: then it is read where it was found.
 */
async function pageOf(query, signal, again) {
  const asked = { q: query.get('q') ?? '', prefix: query.get('prefix') ?? '', held_over: query.get('over') ?? '', limit: LIMIT };
  let cursor = again ? again.from : (query.get('cursor') ?? '');
  let scanned = 0;
  for (let turn = 0; ; turn += 1) {
    const page = await read('locks', { ...asked, cursor }, signal);
    scanned += page.scanned ?? page.locks.length;
    if (page.locks.length || !page.next || again || turn === PATIENCE) return { ...page, scanned, from: cursor };
    cursor = page.next;
  }
}

function draw({ page, results, order }) {
  const { query } = here();
  const kind = query.get('kind');
  const rows = sorted(page.locks.filter((lock) => !kind || kindOf(lock) === kind), query.get('sort'));
  fill(results, rows.length ? table(rows, query.get('sort'), order) : nothing(query, page), pager(query, page, rows.length));
}

function kindOf(lock) {
  return lock.kind === 'lock' && lock.holders.some((holder) => holder.mode === 'shared') ? 'shared' : lock.kind;
}

function nothing(query, page) {
  if (page.next) return empty('search', t('empty.so-far'), t('empty.so-far.text', { scanned: count(page.scanned) }));
  const filtered = ['q', 'prefix', 'over', 'kind'].some((name) => query.get(name));
  if (filtered) return empty('search', t('empty.search'), t('empty.search.text'));
  return empty('locks', t('empty.locks'), t('empty.locks.text'), 'leasehold run demo -- sleep 60');
}

function pager(query, page, rows) {
  const cursor = query.get('cursor');
  const all = Object.fromEntries(query);
  const on = () => {
    trail.push(cursor ?? '');
    go(address('locks', null, { ...all, cursor: page.next }));
  };
  const back = () => go(address('locks', null, { ...all, cursor: trail.pop() ?? '' }));
  // The store gives names in an order of its own: what is first here need not be the first of all.
  const partly = query.get('sort') && (cursor || page.next);
  return h('div', { class: 'pager' },
    h('span', { class: 'quiet small', role: 'status' }, t(partly ? 'pager.sorted' : 'pager.rows', { count: count(rows) })),
    cursor && h('button', { type: 'button', onclick: back, 'data-key': 'pager-back' }, icon('back'), t(trail.length ? 'pager.back' : 'pager.first')),
    page.next && h('button', { type: 'button', onclick: on, 'data-key': 'pager-next' }, t('pager.next'), icon('next')));
}
