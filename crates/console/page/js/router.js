// Which view is shown, and with what filters: both live in the address, so that a view can be kept, sent and gone back
// to. Addresses are fragments (`#/locks?q=order`), which the server never sees and which work under any path.

const listeners = new Set();

/** Where we are: `{ view, name, query }`. */
export function here() {
  const [path, search = ''] = (location.hash.slice(1) || '/').split('?', 2);
  const [view = '', ...rest] = path.split('/').slice(1);
  return { view: view || 'overview', name: rest.length ? decoded(rest.join('/')) : null, query: new URLSearchParams(search) };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The address of a view. */
export function address(view, name = null, query = {}) {
  const path = view === 'overview' ? '/' : `/${view}`;
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value)).toString();
  return `#${path}${name === null ? '' : `/${encodeURIComponent(name)}`}${search ? `?${search}` : ''}`;
}

/** Goes to an address; an entry of the history for each. */
export function go(to) {
  if (location.hash === to) announce();
  else location.hash = to;
}

/** Changes filters of the view we are in, without an entry for every letter typed. */
export function refine(changes) {
  const { view, name, query } = here();
  const all = { ...Object.fromEntries(query), ...changes };
  history.replaceState(null, '', address(view, name, all));
}

/** Calls back at every change of the address. */
export function onMove(listener) {
  listeners.add(listener);
}

function announce() {
  for (const listener of listeners) listener(here());
}

addEventListener('hashchange', announce);
