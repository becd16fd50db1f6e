// Asking the server. Every answer is JSON or a problem; a problem becomes a `Problem` that says what to do. The token goes
// into a header and nowhere else, and is kept no longer than this tab.

const KEY = 'leasehold.token';
let token = remembered();

/** What went wrong, as the server told it; `status` 0 means that it did not answer. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail ?? body.title ?? `status ${status}`);
    this.status = status;
    this.kind = body.kind ?? 'unavailable';
    this.body = body;
  }
}

/** Whether the reader gave a token. */
export function hasToken() {
  return token !== null;
}

/** Uses this token from now on; null forgets it. */
export function useToken(next) {
  token = next || null;
  try {
    if (token) sessionStorage.setItem(KEY, token);
    else sessionStorage.removeItem(KEY);
  } catch {
    // Kept in memory alone then.
  }
}

/** Looks something up: `read('locks', { q: 'order' }, signal)`. */
export function read(path, query = {}, signal = undefined) {
  return ask(path, query, { signal });
}

/** Changes something. Needs the operator's token; the server refuses otherwise. */
export function act(path, query, body, signal = undefined) {
  const headers = { 'Content-Type': 'application/json', 'X-Leasehold': '1' };
  return ask(path, query, { method: 'POST', headers, body: JSON.stringify(body), signal });
}

/** The stream of events, as it comes. */
export async function stream(signal) {
  const response = await reach('events', {}, { signal, headers: { Accept: 'text/event-stream' } });
  if (!response.ok) throw await problem(response);
  return response.body;
}

/** The path of something about one name. The name also goes as a parameter where a path cannot carry it. */
export function ofLock(name, act = null) {
  return of('locks', name, act);
}

/** The same for a job. */
export function ofJob(name, act) {
  return of('jobs', name, act);
}

function of(what, name, act) {
  const dots = name === '.' || name === '..' || name === '';
  const path = `${what}/${dots ? '-' : encodeURIComponent(name)}${act ? `/${act}` : ''}`;
  return [path, dots ? { name } : {}];
}

async function ask(path, query, options) {
  const response = await reach(path, query, options);
  if (!response.ok) throw await problem(response);
  return response.json();
}

async function reach(path, query, options) {
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== null && value !== '')).toString();
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  try {
    return await fetch(`api/v1/${path}${search ? `?${search}` : ''}`, { ...options, headers, cache: 'no-store' });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Problem(0, { kind: 'unreachable' });
  }
}

async function problem(response) {
  const body = await response.json().catch(() => ({}));
  return new Problem(response.status, body);
}

function remembered() {
  try {
    return sessionStorage.getItem(KEY);
  } catch {
    return null;
  }
}
