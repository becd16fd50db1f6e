// Loading again: when the live stream says that something changed, and now and then in any case, since renewals are not
// told. Never two loads at once, never more than one every two seconds however much happens.

import * as live from './live.js';

const LEAST = 2000;

/** Calls `load` after news that `concerns` us, and every `every` milliseconds, until the signal ends it. Returns what hurries it. */
export function keepFresh({ load, every, signal, concerns = () => true }) {
  let timer = null;
  let due = Infinity;
  let last = performance.now();
  const by = (delay) => {
    const at = performance.now() + delay;
    if (signal.aborted || at >= due) return;
    clearTimeout(timer);
    due = at;
    timer = setTimeout(run, delay);
  };
  const run = async () => {
    // Nobody looks, or nobody wants to: a later turn will do.
    const idle = live.standing().state === 'paused' || document.hidden;
    if (!idle) await load().catch(() => {});
    last = performance.now();
    due = Infinity;
    by(every);
  };
  const hurry = () => by(Math.max(150, LEAST - (performance.now() - last)));
  live.on('change', (news) => concerns(news) && hurry(), signal);
  live.on('afresh', hurry, signal);
  signal.addEventListener('abort', () => clearTimeout(timer));
  by(every);
  return hurry;
}
