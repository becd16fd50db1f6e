// Small parts that several views share: who somebody is, what state a name is in, a lease as a draining bar, an age that
// goes on counting.

import { eachSecond, firstSeen, now } from './clock.js';
import { h } from './dom.js';
import { exact, moment, span, ticking } from './format.js';
import { icon } from './icons.js';
import { t } from './i18n.js';
import { isExpiring, observe, remaining, share } from './leases.js';
import { address } from './router.js';
import { shown } from './text.js';

/** Who: program first, then machine and process. */
export function person(who) {
  return h('span', { class: 'person' }, shown(who.program, { class: 'program' }),
    h('span', { class: 'quiet small' }, shown(who.host), `:${who.pid}`));
}

/** What for, if they said so. */
export function label(who) {
  return who.label ? shown(who.label, { class: 'label', title: t('label') }) : null;
}

/** A mark with a word: colour, shape and text say the same. */
export function mark(tone, text) {
  return h('span', { class: `mark ${tone}` }, h('span', { class: 'shape', 'aria-hidden': 'true' }), text);
}

/** The state of a name. */
export function stateOf(lock) {
  if (lock.state === 'open' || lock.state === 'closed') return mark(lock.state === 'open' ? 'calm' : 'wait', t(`state.${lock.state}`));
  if (!lock.holders.length) return lock.waiters.length ? mark('wait', t('state.wanted')) : mark('idle', t('state.free'));
  const soon = lock.holders.some((holder) => isExpiring(observe(holder)));
  if (soon) return mark('alarm', t('state.expiring'));
  return lock.waiters.length ? mark('wait', t('state.contended')) : mark('calm', t('state.held'));
}

/** What a name is in use as, with its numbers. */
export function kindOf(lock) {
  const shared = lock.holders.filter((holder) => holder.mode === 'shared').length;
  const taken = lock.holders.reduce((sum, holder) => sum + (holder.permits ?? 0), 0);
  if (lock.kind === 'semaphore') return t('kind.semaphore', { taken, of: lock.permits });
  if (lock.kind === 'latch') return t('kind.latch', { count: lock.count });
  if (shared) return t('kind.shared', { count: shared });
  return t(lock.kind === 'lock' ? 'kind.lock' : 'kind.other');
}

/** A lease as a bar that drains, with what is left in words. */
export function leaseBar(holder) {
  const lease = observe(holder);
  const fill = h('span', { class: 'lease-fill' });
  const words = h('span', { class: 'lease-words' });
  const track = h('span', { class: 'lease-track', 'aria-hidden': 'true' }, fill);
  const bar = h('span', { class: 'lease-bar', title: t('lease.title') }, track, words);
  eachSecond(bar, () => {
    const left = remaining(lease);
    bar.dataset.tone = left <= 0 ? 'over' : isExpiring(lease) ? 'soon' : 'calm';
    fill.style.setProperty('--left', share(lease).toFixed(4));
    words.textContent = left <= 0 ? t('lease.over') : ticking(left);
  });
  return bar;
}

/** An age that goes on counting from when the server told it, in this answer. */
export function age(milliseconds, answer) {
  const told = firstSeen(answer);
  const element = h('span', { class: 'age' });
  eachSecond(element, () => (element.textContent = ticking(milliseconds + now() - told)));
  return element;
}

/** A moment in the past: short, in full under the pointer. */
export function when(iso) {
  return h('time', { datetime: iso, title: exact(iso) }, moment(iso));
}

/** How far off a moment is, ahead or past, counted from the time that the server told in this answer; in full under the pointer. */
export function relative(iso, answer) {
  const told = firstSeen(answer);
  const element = h('time', { class: 'age', datetime: iso, title: exact(iso) });
  eachSecond(element, () => {
    const ahead = Date.parse(iso) - Date.parse(answer.now) - (now() - told);
    const key = Math.abs(ahead) < 1000 ? 'time.now' : ahead > 0 ? 'time.in' : 'time.ago';
    element.textContent = Number.isNaN(ahead) ? t('unknown') : t(key, { age: ticking(Math.abs(ahead)) });
  });
  return element;
}

/** Ways to the first page and to the next, where there are some. */
export function pages(view, cursor, next) {
  if (!cursor && !next) return null;
  return h('div', { class: 'pager' }, cursor && h('a', { class: 'button', href: address(view) }, icon('back'), t('pager.first')),
    next && h('a', { class: 'button', href: address(view, null, { cursor: next }) }, t('pager.next'), icon('next')));
}

/** A fixed length of time. */
export function length(milliseconds) {
  return milliseconds === null || milliseconds === undefined ? '–' : span(milliseconds);
}
