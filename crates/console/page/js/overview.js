// The overview: how many are held, waiting, about to run out, lost; the live chart; who waits and who holds longest.

import { read } from './api.js';
import { chart } from './chart.js';
import { fill, h, s } from './dom.js';
import { count } from './format.js';
import { t } from './i18n.js';
import * as live from './live.js';
import { age, mark, person } from './parts.js';
import { redrawn } from './focus.js';
import { keepFresh } from './refresh.js';
import { address } from './router.js';
import { empty } from './states.js';
import { shown } from './text.js';

const EVERY = 10_000;

/** Shows it, and keeps it fresh. */
export async function show({ room, signal }) {
  let seen = await read('overview', {}, signal);
  const cards = h('div', { class: 'cards' });
  const lists = h('div', { class: 'pair' });
  const curve = chart();
  fill(room, h('div', { class: 'title' }, h('h1', {}, t('view.overview'))), cards, panel(t('chart.title'), curve.element), lists);
  const draw = () => {
    redrawn(cards, () => fill(cards, allCards(seen)));
    redrawn(lists, () => fill(lists, longest(seen)));
    curve.update(seen.series);
  };
  draw();
  live.on('overview', (news) => {
    seen = { ...seen, ...news, series: added(seen.series, news.point) };
    redrawn(cards, () => fill(cards, allCards(seen)));
    curve.update(seen.series);
  }, signal);
  const load = async () => {
    seen = await read('overview', {}, signal);
    draw();
  };
  keepFresh({ load, every: EVERY, signal });
}

/** The series with its newest point: the same one again while it fills, else one more. */
function added(series, point) {
  if (!point) return series;
  const before = series.points.at(-1)?.at === point.at ? series.points.slice(0, -1) : series.points;
  return { ...series, points: [...before, point].slice(-180) };
}

function allCards(seen) {
  const { counts, series } = seen;
  const more = seen.complete ? '' : '+';
  return [
    card('held', count(counts.held) + more, t('card.held.text', { holders: count(counts.holders) }), { href: address('locks'), spark: series.points.map((one) => one.held) }),
    card('waiting', count(counts.waiting) + more, t('card.waiting.text'), { href: address('waits'), tone: counts.waiting ? 'wait' : '', spark: series.points.map((one) => one.waiting) }),
    card('expiring', count(counts.expiring), t('card.expiring.text'), { href: address('locks', null, { sort: 'lease' }), tone: counts.expiring ? 'wait' : '' }),
    card('losses', count(counts.losses), t('card.losses.text'), { tone: counts.losses ? 'alarm' : '' }),
    card('broken', count(counts.broken), t('card.broken.text'), { href: address('audit'), tone: counts.broken ? 'alarm' : '' }),
    storeCard(seen),
  ];
}

function card(key, number, text, { href = null, tone = '', spark = null } = {}) {
  const inside = [h('span', { class: 'card-name' }, t(`card.${key}`)), h('strong', { class: 'card-number' }, number), h('span', { class: 'small quiet' }, text), spark && sparkline(spark)];
  return href ? h('a', { class: `card ${tone}`, href, 'data-key': key }, inside) : h('div', { class: `card ${tone}` }, inside);
}

function storeCard({ up, latency_ms: latency, guarantee }) {
  const number = up ? `${latency < 10 ? latency.toFixed(1) : Math.round(latency)} ms` : t('store.no-answer');
  return h('a', { class: `card ${up ? '' : 'alarm'}`, href: address('store'), 'data-key': 'store' },
    h('span', { class: 'card-name' }, t('card.store')), h('strong', { class: 'card-number' }, number),
    h('span', { class: 'small' }, mark(up ? 'calm' : 'alarm', `${t(up ? 'store.up' : 'store.is-down')} · ${guarantee.level}`)));
}

function sparkline(values) {
  const last = values.slice(-60);
  if (last.length < 6) return null;
  const most = Math.max(1, ...last);
  const path = last.map((value, index) => `${index ? 'L' : 'M'}${(index * 100) / (last.length - 1)} ${23 - (value * 21) / most}`).join('');
  return s('svg', { class: 'spark', viewBox: '0 0 100 24', preserveAspectRatio: 'none', 'aria-hidden': 'true' }, s('path', { d: path }));
}

function panel(title, ...inside) {
  return h('section', { class: 'panel' }, h('h2', {}, title), inside);
}

function longest(seen) {
  if (!seen.counts.names) return empty('locks', t('empty.locks'), t('empty.locks.text'), 'leasehold run demo -- sleep 60');
  const waits = seen.longest_waits.map(({ name, waited_ms, waiter }) => entry(name, waited_ms, waiter));
  const holds = seen.longest_holds.map(({ name, held_ms, holder }) => entry(name, held_ms, holder));
  return [panel(t('longest.waits'), ranking(waits, t('longest.no-waits'))), panel(t('longest.holds'), ranking(holds, t('longest.no-holds')))];
}

function ranking(entries, none) {
  return entries.length ? h('ol', { class: 'ranking' }, entries) : h('p', { class: 'quiet' }, none);
}

function entry(name, milliseconds, who) {
  return h('li', {}, h('a', { class: 'name', href: address('locks', name), 'data-key': name }, shown(name)), person(who), age(milliseconds, who));
}
