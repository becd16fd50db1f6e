// One lock: who holds it and from which line of code, its lease over time, who waits in which order, how the last holds
// ended, and the way to break a hold.

import { ofLock, read } from './api.js';
import { breakHold } from './break.js';
import { command, copier } from './copy.js';
import { fill, h } from './dom.js';
import { findings } from './findings.js';
import { redrawn } from './focus.js';
import { history } from './history.js';
import { icon } from './icons.js';
import { t } from './i18n.js';
import { observe } from './leases.js';
import { age, kindOf, leaseBar, mark, person, stateOf, when } from './parts.js';
import { keepFresh } from './refresh.js';
import { address } from './router.js';
import { empty } from './states.js';
import { shown } from './text.js';
import { timeline } from './timeline.js';

const EVERY = 2500;

/** Shows it, and keeps it fresh. */
export async function show({ room, place, signal }) {
  const name = place.name;
  const body = h('div', { class: 'stack' });
  let hurry = () => {};
  const load = async () => {
    const seen = await read(...ofLock(name), signal);
    seen.lock.holders.forEach(observe);
    redrawn(body, () => fill(body, sections(name, seen, () => hurry())));
  };
  await load();
  fill(room, h('a', { class: 'back', href: address('locks') }, icon('back'), t('view.locks')), body);
  hurry = keepFresh({ load, every: EVERY, signal, concerns: (news) => news.name === name });
}

function sections(name, seen, changed) {
  const { lock } = seen;
  return [
    title(name, lock),
    lock.holders.length ? h('div', { class: 'holders' }, lock.holders.map((holder) => holderPanel(name, holder, changed))) : nobody(name, lock),
    waitersPanel(lock),
    seen.findings?.some((one) => one.severity !== 'good') && panel(t('findings.title'), findings(seen.findings)),
    panel(t('history.title'), history(seen.history, seen.history_note)),
    panel(t('cli.title'), h('p', { class: 'quiet small' }, t('cli.text')), command(seen.cli)),
  ];
}

function title(name, lock) {
  return h('div', { class: 'lock-title' }, h('h1', {}, shown(name)), copier(name), stateOf(lock),
    h('span', { class: 'quiet' }, lock.kind ? kindOf(lock) : t('kind.unknown')));
}

function nobody(name, lock) {
  if (lock.kind === 'latch') return h('p', { class: 'panel' }, t(lock.count ? 'latch.closed' : 'latch.open', { count: lock.count }));
  return empty('locks', t('detail.free'), t('detail.free.text'), `leasehold run ${name.startsWith('-') ? '--all=' : ''}${quoted(name)} -- sleep 60`);
}

/** A name as a shell takes it. */
function quoted(name) {
  return /^[\w.:/@-]+$/.test(name) && !name.startsWith('-') ? name : `'${name.replaceAll("'", "'\\''")}'`;
}

function holderPanel(name, holder, changed) {
  const act = h('button', { class: 'danger-line', type: 'button', 'data-key': `break-${holder.id}`, onclick: async () => (await breakHold(name, holder)) && changed() },
    icon('broken'), t('break.open'));
  return h('section', { class: 'panel holder', 'aria-label': t('holder.title') },
    h('div', { class: 'holder-head' }, h('h2', {}, t('holder.title')), mode(holder), h('span', { class: 'gap' }), act),
    h('div', { class: 'holder-who' }, person(holder), holder.label && shown(holder.label, { class: 'label' })),
    h('div', { class: 'holder-lease' }, h('div', { class: 'lease-box' }, h('span', { class: 'small quiet' }, t('column.lease')), leaseBar(holder)), timeline(holder)),
    facts(holder));
}

function mode(holder) {
  const words = holder.mode === 'permits' ? t('mode.permits', { count: holder.permits }) : t(`mode.${holder.mode}`);
  return mark('plain', words);
}

function facts(holder) {
  const rows = [
    ['fact.since', [when(holder.since), ' · ', age(holder.held_ms, holder)]],
    ['fact.fence', [h('span', { class: 'mono' }, holder.fence_text)]],
    ['fact.location', holder.location && h('span', { class: 'mono' }, shown(holder.location))],
    ['fact.host', shown(holder.host)],
    ['fact.process', [shown(holder.program), ` · pid ${holder.pid}`]],
    ['fact.user', shown(holder.user)],
    ['fact.count', holder.count > 1 && t('fact.count.times', { count: holder.count })],
    ['fact.id', [h('span', { class: 'mono small' }, shown(holder.id)), copier(holder.id)]],
  ];
  return h('dl', { class: 'facts' }, rows.filter(([, value]) => value).map(([key, value]) => h('div', { class: key === 'fact.id' ? 'whole' : null }, h('dt', {}, t(key)), h('dd', {}, value))));
}

function waitersPanel(lock) {
  const count = lock.waiters.length;
  if (!count) return panel(t('waiters.title'), h('p', { class: 'quiet' }, t('waiters.none')));
  const inLine = lock.waiters.some((waiter) => waiter.fair);
  return panel(t(inLine ? 'waiters.count' : 'waiters.loose', { count }), h('ol', { class: 'line' }, lock.waiters.map(waiterRow)));
}

function waiterRow(waiter, index) {
  return h('li', {}, h('span', { class: 'place', 'aria-hidden': 'true' }, waiter.fair ? String(index + 1) : '·'), person(waiter),
    waiter.label && shown(waiter.label, { class: 'label' }),
    waiter.location && h('span', { class: 'mono small quiet' }, shown(waiter.location)),
    h('span', { class: 'gap' }), waiter.fair && mark('plain', t('waiter.fair')), age(waiter.waited_ms, waiter));
}

function panel(title, ...inside) {
  return h('section', { class: 'panel' }, h('h2', {}, title), inside);
}
