// The store: is it well, what are its locks worth and what would break them, what can it do, what did its examination find.

import { read } from './api.js';
import { fill, h } from './dom.js';
import { findings } from './findings.js';
import { redrawn } from './focus.js';
import { span } from './format.js';
import { t } from './i18n.js';
import { mark, when } from './parts.js';
import { keepFresh } from './refresh.js';
import { shown } from './text.js';

const LEVELS = ['S0', 'S1', 'S2', 'S3', 'S4'];
const ABILITIES = ['shared', 'permits', 'fair', 'latch', 'cells', 'rate', 'detached', 'cohort'];

/** Shows it, and keeps it fresh. */
export async function show({ room, signal }) {
  const body = h('div', { class: 'stack' });
  const load = async () => {
    const [store, overview] = await Promise.all([read('store', {}, signal), read('overview', {}, signal)]);
    redrawn(body, () => fill(body, sections(store, overview.server)));
  };
  await load();
  fill(room, h('div', { class: 'title' }, h('h1', {}, t('view.store'))), body);
  keepFresh({ load, every: 15_000, signal, concerns: () => false });
}

function sections(store, server) {
  return [
    h('div', { class: 'pair' }, health(store, server), guarantee(store.guarantee)),
    panel(t('findings.title'), store.findings.length ? findings(store.findings) : h('p', { class: 'quiet' }, t('findings.none')),
      store.examined_at && h('p', { class: 'small quiet' }, t('findings.at'), ' ', when(store.examined_at))),
    panel(t('abilities.title'), abilities(store.capabilities)),
  ];
}

function health(store, server) {
  const fact = (key, value) => h('div', {}, h('dt', {}, t(key)), h('dd', {}, value));
  return panel(t('health.title'), h('p', { class: 'health' }, mark(store.up ? 'calm' : 'alarm', t(store.up ? 'store.up' : 'store.is-down')),
    store.up ? h('span', { class: 'quiet' }, t('health.latency', { latency: `${store.latency_ms.toFixed(1)} ms` })) : null),
  store.error && h('p', { class: 'fault', lang: 'en' }, shown(store.error)),
  h('dl', { class: 'facts' }, fact('health.scheme', store.scheme), fact('health.address', h('span', { class: 'mono' }, shown(store.address))),
    store.prefix && fact('health.prefix', h('span', { class: 'mono' }, shown(store.prefix))),
    fact('health.server', `${server.version} · ${t('health.uptime', { age: span(server.uptime_ms) })}`), fact('health.streams', `${server.streams} / ${server.max_streams}`)));
}

function guarantee({ level, unless }) {
  const reached = LEVELS.indexOf(level);
  const steps = LEVELS.map((one, index) => h('li', { class: index <= reached ? 'reached' : null, 'aria-current': one === level ? 'true' : null },
    h('strong', {}, one), h('span', {}, t(`level.${one}`), one === level && h('em', {}, t('level.here')))));
  return panel(t('guarantee.title'), h('ol', { class: 'ladder' }, steps), h('p', {}, h('strong', {}, t('guarantee.unless')), ' ', h('span', { lang: 'en' }, shown(unless))));
}

function abilities(can) {
  const one = (key) => h('li', {}, mark(can[key] ? 'calm' : 'idle', t(`ability.${key}`)), h('span', { class: 'for-ears' }, t(can[key] ? 'yes' : 'no')));
  return [h('ul', { class: 'abilities' }, ABILITIES.map(one)),
    h('p', { class: 'small quiet' }, t('abilities.leases', { least: span(can.min_ttl_ms), most: span(can.max_ttl_ms) }))];
}

function panel(title, ...inside) {
  return h('section', { class: 'panel' }, h('h2', {}, title), inside);
}
