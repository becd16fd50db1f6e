// Breaking a hold: the one thing on this page that can do harm. So it shows who holds the lock and how fresh their sign of
// life is, says that their work goes on, wants the name typed and a reason, and sends the acquisition that was seen: if the
// lock has changed hands meanwhile the server refuses, and we say so.

import * as access from './access.js';
import { act, ofLock } from './api.js';
import { ask } from './dialog.js';
import { h } from './dom.js';
import { t } from './i18n.js';
import { age, leaseBar, person } from './parts.js';
import { observe } from './leases.js';
import { eachSecond } from './clock.js';
import { say } from './shell.js';
import { plain, shown } from './text.js';
import { sign } from './timeline.js';

/** Asks, and breaks exactly this hold. Resolves to whether something may have changed. */
export async function breakHold(name, holder) {
  if (!access.mayAct() && !(await access.enter(t('access.why-break')))) return false;
  let changed = false;
  const done = await ask({
    title: t('break.title'), danger: true, accept: t('break.do'), body: [holding(name, holder), warning()],
    fields: [
      { name: 'typed', label: t('break.name'), hint: t('break.name.hint', { name: plain(name) }) },
      { name: 'reason', label: t('break.reason'), hint: t('break.reason.hint'), rows: 2, maxlength: 500 },
      { name: 'by', label: t('break.by'), maxlength: 100 },
    ],
    ready: ({ typed, reason }) => matches(typed, name) && reason.trim() !== '',
    act: ({ reason, by }) => sent(name, holder, reason.trim(), by.trim(), () => (changed = true)),
  });
  if (done) say(t('break.done', { name: plain(name) }));
  return done || changed;
}

/** A name with characters that nobody can type may be typed as it is shown. */
function matches(typed, name) {
  return typed === name || typed === plain(name);
}

async function sent(name, holder, reason, by, changed) {
  const [path, query] = ofLock(name, 'break');
  try {
    await act(path, query, { id: holder.id, reason, ...(by ? { by } : {}) });
  } catch (problem) {
    if (problem.kind === 'changed_hands') changed();
    throw new Error(words(problem), { cause: problem });
  }
}

function words(problem) {
  if (problem.kind === 'changed_hands') return changedHands(problem.body.lock);
  if (problem.status === 401 || problem.status === 403) return t('break.refused');
  if (problem.status === 0) return t('trouble.unreachable');
  return plain(problem.message);
}

function changedHands(lock) {
  const next = lock?.holders?.[0];
  return next ? t('break.changed', { who: plain(`${next.program} (${next.host}:${next.pid})`) }) : t('break.changed.free');
}

function holding(name, holder) {
  const words = h('p', { class: 'small' });
  const lease = observe(holder);
  eachSecond(words, () => (words.textContent = sign(lease)));
  return h('div', { class: 'holding' }, h('p', { class: 'holding-name' }, shown(name)),
    h('div', { class: 'holding-who' }, person(holder), holder.label && shown(holder.label, { class: 'label' }), h('span', { class: 'small' }, t('break.held'), ' ', age(holder.held_ms, holder))),
    leaseBar(holder), words);
}

function warning() {
  return h('div', { class: 'warning' }, h('strong', {}, t('break.warning')), h('ul', {}, ['break.warning.work', 'break.warning.fence', 'break.warning.audit'].map((key) => h('li', {}, t(key)))));
}
