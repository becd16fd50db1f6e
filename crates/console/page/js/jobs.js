// Scheduled jobs as the store knows them. What is told of a job is shown as it is told, field by field.

import { read } from './api.js';
import { fill, h } from './dom.js';
import { redrawn } from './focus.js';
import { t } from './i18n.js';
import { keepFresh } from './refresh.js';
import { empty } from './states.js';
import { plain, shown } from './text.js';

/** Shows them, and keeps them fresh. */
export async function show({ room, signal }) {
  const body = h('div', { class: 'stack' });
  const load = async () => {
    const { jobs, note } = await read('jobs', {}, signal);
    redrawn(body, () => fill(body, jobs.length ? h('div', { class: 'pair' }, jobs.map(job)) : none(note)));
  };
  await load();
  fill(room, h('div', { class: 'title' }, h('h1', {}, t('view.jobs')), h('p', { class: 'quiet' }, t('jobs.lead'))), body);
  keepFresh({ load, every: 10_000, signal });
}

function none(note) {
  return empty('jobs', t('empty.jobs'), t('empty.jobs.text'), 'leasehold run --nonblock nightly-report -- ./report.sh', note);
}

function job({ name, ...facts }) {
  const rows = Object.entries(facts).filter(([, value]) => value !== null && typeof value !== 'object');
  return h('section', { class: 'panel' }, h('h2', {}, shown(name)),
    h('dl', { class: 'facts' }, rows.map(([key, value]) => h('div', {}, h('dt', {}, plain(key)), h('dd', {}, shown(value))))));
}
