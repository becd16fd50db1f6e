// Who waits for whom, as a drawing and as a list; circles are marked. A circle is a suspicion: the tasks of one process are one
// owner here.

import { read } from './api.js';
import { fill, h } from './dom.js';
import { redrawn } from './focus.js';
import { graph } from './graph.js';
import { icon } from './icons.js';
import { parts, t } from './i18n.js';
import { age, mark, person } from './parts.js';
import { keepFresh } from './refresh.js';
import { address } from './router.js';
import { empty } from './states.js';
import { plain, shown } from './text.js';

const EVERY = 5000;

/** Shows it, and keeps it fresh. */
export async function show({ room, signal }) {
  const body = h('div', { class: 'stack' });
  // What is drawn anew would be read out anew: who listens is told of each circle once.
  const alarm = h('div', { class: 'for-ears', role: 'alert' });
  const load = async () => {
    const seen = await read('waits', {}, signal);
    redrawn(body, () => fill(body, sections(seen)));
    const circles = seen.cycles.map(circle).join('. ');
    if (alarm.textContent !== circles) alarm.textContent = circles;
  };
  await load();
  fill(room, h('div', { class: 'title' }, h('h1', {}, t('view.waits')), h('p', { class: 'quiet' }, t('waits.lead'))), alarm, body);
  keepFresh({ load, every: EVERY, signal });
}

function sections(seen) {
  if (!seen.edges.length) return empty('waits', t('empty.waits'), t('empty.waits.text'));
  return [
    seen.cycles.map((cycle) => cyclePanel(cycle, seen)),
    !seen.complete && h('p', { class: 'quiet' }, t('waits.incomplete')),
    h('section', { class: 'panel' }, h('h2', {}, t('waits.drawing')), graph(seen)),
    h('section', { class: 'panel' }, h('h2', {}, t('waits.list')), list(seen)),
  ];
}

function circle({ owners, names }) {
  return `${t('cycle.title', { count: owners.length })}: ${names.map(plain).join(', ')}`;
}

/** By the edges that make it: a cycle names its owners and its locks, not which of them belong together. */
function cyclePanel({ owners }, seen) {
  const edges = seen.edges.filter(({ cycle, from, to }) => cycle && owners.includes(from) && owners.includes(to));
  const steps = edges.map(({ from, to, name }) => h('li', {}, person(seen.owners[from]), ' ', parts('cycle.step', { name: link(name), who: person(seen.owners[to]) })));
  return h('section', { class: 'panel cycle' }, h('h2', {}, icon('warning'), t('cycle.title', { count: owners.length })),
    h('ol', {}, steps), h('p', { class: 'small' }, t('cycle.text')));
}

function link(name) {
  return h('a', { href: address('locks', name), 'data-key': name }, shown(name));
}

function list({ edges, owners }) {
  const heads = ['from', 'name', 'to', 'waited'].map((key) => h('th', { scope: 'col', class: key }, t(`waits.${key}`)));
  const order = [...edges].sort((a, b) => b.cycle - a.cycle || b.waited_ms - a.waited_ms);
  const rows = order.slice(0, 200).map((edge) => h('tr', { class: edge.cycle ? 'in-cycle' : null },
    cell('from', person(owners[edge.from])), cell('name', link(edge.name), edge.cycle && mark('alarm', t('cycle.mark'))),
    cell('to', person(owners[edge.to])), cell('waited', age(edge.waited_ms, edge))));
  return h('div', { class: 'table-frame flat' }, h('table', { class: 'plain-table' }, h('thead', {}, h('tr', {}, heads)), h('tbody', {}, rows)));
}

function cell(key, ...inside) {
  return h('td', { class: key, 'data-label': plain(t(`waits.${key}`)) }, h('span', { class: 'cell' }, inside));
}
