// Jobs that run once per slot, wherever they were started: what each does now, when it runs next, who ran it and how that
// went. Those who may can pause and resume it. Slots go by the store's clock; how far off they are is told from the
// server's, never from the browser's.

import { read } from './api.js';
import { fill, h } from './dom.js';
import { redrawn } from './focus.js';
import { count } from './format.js';
import { icon } from './icons.js';
import { parts, t } from './i18n.js';
import { length, mark, pages, person, relative } from './parts.js';
import { pause, resume } from './pausing.js';
import { keepFresh } from './refresh.js';
import { address } from './router.js';
import { empty } from './states.js';
import { shown } from './text.js';

const TONES = { running: 'calm', paused: 'wait', resting: 'idle', waiting: 'idle' };
const OUTCOMES = { done: 'calm', failed: 'alarm', lost: 'alarm', died: 'alarm', missed: 'wait' };
const RUNS = 8;

/** Loads the view that is shown: a token that was asked for draws another than the one it was asked in. */
let loadShown = async () => {};

/** Shows them, and keeps them fresh. */
export async function show({ room, place, signal }) {
  const body = h('div', { class: 'stack' });
  const cursor = place.query.get('cursor') ?? '';
  const load = async () => {
    const page = await read('jobs', { cursor, limit: 50 }, signal);
    const panels = () => h('div', { class: 'pair' }, page.jobs.map((one) => job(one, page)));
    redrawn(body, () => fill(body, page.jobs.length ? panels() : none(page.note), pages('jobs', cursor, page.next)));
  };
  loadShown = load;
  await load();
  fill(room, h('div', { class: 'title' }, h('h1', {}, t('view.jobs')), h('p', { class: 'quiet' }, t('jobs.lead'))), body);
  keepFresh({ load, every: 5000, signal });
}

function none(note) {
  return empty('jobs', t('empty.jobs'), t('empty.jobs.text'), 'leasehold cron nightly --schedule "0 2 * * *" --at-most 2h -- ./report.sh', note);
}

function job(one, page) {
  return h('section', { class: 'panel job', 'data-state': one.state },
    h('div', { class: 'holder-head' }, h('h2', {}, h('a', { href: address('locks', one.name), 'data-key': one.name }, shown(one.name))),
      mark(TONES[one.state] ?? 'idle', t(`job.state.${one.state}`)), one.paused && one.state !== 'paused' && mark('wait', t('job.state.paused')),
      h('span', { class: 'gap' }), act(one)),
    one.paused && pausedBy(one.paused, page), facts(one, page), totals(one.totals), runs(one.runs, page));
}

function act(one) {
  const press = async () => (await (one.paused ? resume(one) : pause(one))) && loadShown().catch(() => {});
  return h('button', { type: 'button', class: one.paused ? 'resume' : 'pause', 'data-key': `pause ${one.name}`, onclick: press },
    icon(one.paused ? 'play' : 'pause'), t(one.paused ? 'job.resume' : 'job.pause'));
}

function pausedBy({ by, why, since }, page) {
  return h('div', { class: 'job-paused' }, h('p', {}, shown(why)), h('p', { class: 'small quiet' }, shown(by), ' · ', relative(since, page)));
}

function facts(one, page) {
  const fact = (key, ...inside) => h('div', {}, h('dt', {}, t(key)), h('dd', {}, inside));
  const at = (iso) => relative(iso, page);
  const { running } = one;
  return h('dl', { class: 'facts' },
    fact('job.schedule', one.schedule ? [shown(one.schedule, { class: 'mono' }), h('span', { class: 'quiet small' }, shown(one.zone ?? 'UTC'))] : t('job.unscheduled')),
    one.next && fact('job.next', at(one.next), one.paused && h('span', { class: 'quiet small' }, t('job.next.paused'))),
    one.last && fact('job.last', at(one.last)),
    one.rests_until && fact('job.rests', at(one.rests_until)),
    running && fact('job.running', person(running), h('span', { class: 'quiet small' }, parts('job.began', { at: relative(running.started, page) }))));
}

function totals(all) {
  const total = (key) => h('li', { class: all[key] ? OUTCOMES[key] : 'zero' }, h('strong', {}, count(all[key])), ' ', t(`job.outcome.${key}`));
  return h('ul', { class: 'totals', 'aria-label': t('job.totals') }, Object.keys(OUTCOMES).map(total));
}

function runs(past, page) {
  if (!past.length) return h('p', { class: 'quiet small' }, t('job.runs.none'));
  return [h('h3', {}, t('job.runs')), h('ol', { class: 'runs' }, past.slice(-RUNS).reverse().map((run) => row(run, page)))];
}

function row(run, page) {
  const many = run.count > 1 ? t('job.missed', { count: count(run.count) }) : null;
  return h('li', {}, mark(OUTCOMES[run.outcome] ?? 'plain', t(`job.outcome.${run.outcome}`)), h('span', { class: 'run-slot' }, relative(run.slot, page)),
    h('span', { class: 'run-who' }, run.host ? person(run) : many), h('span', { class: 'run-took num' }, run.host && length(run.took_ms)),
    run.why && shown(run.why, { class: 'run-why small' }));
}
