// Who the reader is to the server: operator, viewer or nobody, and the dialog that asks for a token. What may be done is
// decided by the server alone; the page only asks in time.

import { hasToken, read, useToken } from './api.js';
import { ask } from './dialog.js';
import { h } from './dom.js';
import { icon } from './icons.js';
import { t } from './i18n.js';
import { plain } from './text.js';

const listeners = new Set();
let known = null;
let wrong = false;
let hindered = null;

/** What the server said of us, or null if it did not answer. */
export function session() {
  return known;
}

/** Whether lookups are allowed. Where the server did not answer the views say so themselves. */
export function mayRead() {
  return known === null || known.reads === 'open' || known.role !== 'none';
}

/** Whether we may break locks. */
export function mayAct() {
  return known?.role === 'operator';
}

/** Calls back whenever another token is used. */
export function onChange(listener) {
  listeners.add(listener);
}

/** Asks the server who we are. A token it does not know is forgotten. */
export async function refresh() {
  try {
    known = await read('session');
    [wrong, hindered] = [false, null];
  } catch (problem) {
    hindered = problem;
    if (problem.status !== 401 || !hasToken()) return;
    wrong = true;
    useToken(null);
    known = await read('session').catch(() => null);
  }
  for (const button of document.querySelectorAll('.role')) draw(button);
}

/** A lookup was refused: the token is no longer good. */
export async function refused() {
  useToken(null);
  await changed();
}

/** The button that shows the role and asks for a token. */
export function button() {
  const one = h('button', { id: 'access', class: 'role', type: 'button', onclick: () => (hasToken() ? leave() : enter()) });
  draw(one);
  return one;
}

/** What stands in place of a view that may not be seen yet. */
export function door() {
  return h('section', { class: 'empty' }, icon('key'), h('h1', {}, t('door.title')), h('p', {}, t('door.text')),
    h('button', { class: 'primary', type: 'button', onclick: () => enter() }, t('access.enter')));
}

/** Asks for a token; resolves to whether the reader may break locks then. */
export async function enter(why = t('access.text')) {
  wrong = false;
  const done = await ask({
    title: t('access.title'), text: why, accept: t('access.use'),
    fields: [{ name: 'token', label: t('access.token'), type: 'password', autocomplete: 'off' }],
    act: async ({ token }) => {
      const before = hasToken();
      useToken(token.trim());
      await refresh();
      if (wrong) throw new Error(t('access.wrong'));
      if (!hindered) return;
      // Nobody has said that it is right.
      if (!before) useToken(null);
      throw new Error(hindered.status === 0 ? t('trouble.unreachable') : plain(hindered.message));
    },
  });
  if (done) await changed();
  return mayAct();
}

async function leave() {
  const done = await ask({ title: t('access.leave'), text: t('access.leave.text'), accept: t('access.forget'), fields: [], act: async () => useToken(null) });
  if (done) await changed();
}

async function changed() {
  await refresh();
  for (const listener of listeners) listener();
}

function draw(one) {
  const role = mayRead() ? (known?.role ?? 'none') : 'stranger';
  one.replaceChildren(icon('key'), t(`role.${role}`));
  one.title = t(hasToken() ? 'access.leave' : 'access.enter');
}
