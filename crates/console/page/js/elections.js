// Elections: who leads, under which fence, what they proclaim, who stands ready.

import { read } from './api.js';
import { fill, h } from './dom.js';
import { redrawn } from './focus.js';
import { t } from './i18n.js';
import { age, leaseBar, mark, pages, person } from './parts.js';
import { keepFresh } from './refresh.js';
import { address } from './router.js';
import { empty } from './states.js';
import { shown } from './text.js';

/** Shows them, and keeps them fresh. */
export async function show({ room, place, signal }) {
  const body = h('div', { class: 'stack' });
  const cursor = place.query.get('cursor') ?? '';
  const load = async () => {
    const { elections, next, note } = await read('elections', { cursor, limit: 100 }, signal);
    const panels = () => h('div', { class: 'pair' }, elections.map(election));
    redrawn(body, () => fill(body, elections.length ? panels() : none(note), pages('elections', cursor, next)));
  };
  await load();
  fill(room, h('div', { class: 'title' }, h('h1', {}, t('view.elections')), h('p', { class: 'quiet' }, t('elections.lead'))), body);
  keepFresh({ load, every: 5000, signal });
}

function none(note) {
  return empty('elections', t('empty.elections'), t('empty.elections.text'), 'locks.election("scheduler").campaign("10.0.0.7:8080").await?', note);
}

function election({ name, leader, value, candidates }) {
  return h('section', { class: 'panel election' },
    h('div', { class: 'holder-head' }, h('h2', {}, h('a', { href: address('locks', name), 'data-key': name }, shown(name))), mark(leader ? 'calm' : 'wait', t(leader ? 'election.led' : 'election.vacant'))),
    leader && [h('div', { class: 'holder-who' }, person(leader), leaseBar(leader)), facts(leader, value)],
    candidates.length ? [h('h3', {}, t('election.candidates', { count: candidates.length })), h('ol', { class: 'line' }, candidates.map(candidate))]
      : h('p', { class: 'quiet small' }, t('election.alone')));
}

function facts(leader, value) {
  const fact = (key, text) => h('div', {}, h('dt', {}, t(key)), h('dd', {}, text));
  return h('dl', { class: 'facts' }, value !== null && fact('election.value', h('span', { class: 'mono' }, shown(value))),
    fact('election.fence', h('span', { class: 'mono' }, leader.fence_text)), fact('election.since', age(leader.held_ms, leader)));
}

function candidate(waiter, index) {
  return h('li', {}, h('span', { class: 'place', 'aria-hidden': 'true' }, String(index + 1)), person(waiter), h('span', { class: 'gap' }), age(waiter.waited_ms, waiter));
}
