// A lease over time: from when the lock was taken, past every renewal this page saw, to when the lease ends. A long hold is
// shortened at the left, and says so.

import { eachSecond, now } from './clock.js';
import { fill, h } from './dom.js';
import { ticking } from './format.js';
import { t } from './i18n.js';
import { observe, remaining, signAge } from './leases.js';

const SPAN = 120_000;

/** The drawing with the sentence beneath it that says how fresh the holder's sign of life is. */
export function timeline(holder) {
  const lease = observe(holder);
  const drawing = h('div', { class: 'timeline', 'aria-hidden': 'true' });
  const ends = h('div', { class: 'timeline-words', 'aria-hidden': 'true' });
  const words = h('p', { class: 'small' });
  const element = h('div', { class: 'timeline-box' }, drawing, ends, words);
  eachSecond(element, () => {
    fill(drawing, drawn(lease));
    fill(ends, h('span', {}, taken(lease)), h('span', {}, t('timeline.ends')));
    words.textContent = sign(lease);
  });
  return element;
}

/** How fresh the holder's sign of life is, in a sentence. */
export function sign(lease) {
  const since = signAge(lease);
  if (remaining(lease) <= 0) return t('sign.over');
  if (since !== null) return t('sign.seen', { age: ticking(since) });
  return t('sign.none', { age: ticking(now() - lease.watched) });
}

function drawn(lease) {
  const at = now();
  const from = Math.max(lease.began, at - SPAN);
  const whole = Math.max(lease.ends, at) - from + 1;
  const piece = (kind, begin, end = begin) => h('span', { class: kind, '--from': (begin - from) / whole, '--part': (end - begin) / whole });
  return [
    piece('past', from, at),
    piece('ahead', at, Math.max(at, lease.ends)),
    piece(lease.began < from ? 'begin cut' : 'begin', from),
    lease.renewals.filter((time) => time > from).map((time) => piece('renewal', time)),
    piece('end', Math.max(at, lease.ends)),
    piece('now', at),
  ];
}

function taken(lease) {
  return t('timeline.taken', { age: ticking(now() - lease.began) });
}
