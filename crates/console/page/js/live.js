// The live connection: one stream for the whole page. It connects again by itself, tells views what happened, and says at
// any time whether what they show is fresh: a view of locks that has silently stopped is worse than none. A browser has few
// connections to one server for all of its tabs, so a tab that nobody sees gives up its own.

import { stream } from './api.js';
import { eventsOf } from './events.js';

const SILENCE = 40_000;
const LONGEST_PAUSE = 15_000;
const UNSEEN = 10_000;

const bus = new EventTarget();
let state = 'connecting';
let running = null;
let wanted = false;
let unseen = null;
let lastNews = null;
let heard = false;

/** `connecting`, `live`, `stale`, `paused` or `refused`. */
export function standing() {
  return { state, lastNews };
}

/** Calls back for one kind of news (`change`, `overview`, `afresh`, `state`) until the signal ends it. */
export function on(kind, listener, signal = undefined) {
  bus.addEventListener(kind, (event) => listener(event.detail), { signal });
}

/** Connects, and again whenever the stream breaks. */
export function start() {
  stop();
  wanted = true;
  running = new AbortController();
  keep(running.signal);
}

/** Stops listening. What is shown stays as it is, and says so. */
export function pause() {
  stop();
  wanted = false;
  become('paused');
}

function stop() {
  running?.abort();
  running = null;
}

async function keep(signal) {
  for (let failures = 0; !signal.aborted; failures += 1) {
    try {
      await follow(signal, () => (failures = 0));
    } catch (problem) {
      if (signal.aborted) return;
      if (problem.status === 401) return become('refused');
    }
    if (signal.aborted) return;
    become('stale');
    // Not all at once: a server that comes back has many pages to greet.
    await rest(Math.min(1000 * 2 ** failures, LONGEST_PAUSE) * (0.5 + Math.random() / 2), signal);
  }
}

/** Follows one stream to its end, or until it has been silent for too long. */
async function follow(signal, connected) {
  const attempt = new AbortController();
  const end = () => attempt.abort();
  signal.addEventListener('abort', end);
  let guard = setTimeout(end, SILENCE);
  try {
    for await (const news of eventsOf(await stream(attempt.signal))) {
      clearTimeout(guard);
      guard = setTimeout(end, SILENCE);
      lastNews = performance.now();
      if (news) tell(news, connected);
    }
  } finally {
    clearTimeout(guard);
    signal.removeEventListener('abort', end);
    attempt.abort();
  }
}

function tell({ event, data }, connected) {
  if (event === 'hello') {
    connected();
    const again = heard;
    heard = true;
    become('live');
    if (again) send('afresh');
  } else if (event === 'lagged') {
    send('afresh');
  } else {
    send(event, data);
  }
}

function leave() {
  if (!running) return;
  stop();
  become('connecting');
}

function comeBack() {
  if (wanted && !running) start();
}

document.addEventListener('visibilitychange', () => {
  clearTimeout(unseen);
  if (document.hidden) unseen = setTimeout(leave, UNSEEN);
  else comeBack();
});
// A browser may keep a page that was left, connection and all, to go back to.
addEventListener('pagehide', leave);
addEventListener('pageshow', comeBack);

function become(next) {
  if (state === next) return;
  state = next;
  send('state', next);
}

function send(kind, detail = null) {
  bus.dispatchEvent(new CustomEvent(kind, { detail }));
}

function rest(milliseconds, signal) {
  return new Promise((done) => {
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener('abort', () => (clearTimeout(timer), done()), { once: true });
  });
}
