// Begins the page: language, colours, frame, first view, live connection. It knows which view belongs to which address and
// gives each a signal that ends when the reader goes on, so that nothing of an old view lives on.

import { Problem } from './api.js';
import * as access from './access.js';
import * as audit from './audit.js';
import * as detail from './detail.js';
import { fill } from './dom.js';
import * as elections from './elections.js';
import { begin as beginLanguage, t } from './i18n.js';
import * as jobs from './jobs.js';
import * as live from './live.js';
import * as locks from './locks.js';
import * as overview from './overview.js';
import { plain } from './text.js';
import { here, onMove } from './router.js';
import * as shell from './shell.js';
import { trouble } from './states.js';
import * as store from './store.js';
import { begin as beginTheme } from './theme.js';
import * as waits from './waits.js';

const VIEWS = { overview, locks, waits, jobs, elections, audit, store };
let leaving = new AbortController();

beginTheme();
beginLanguage();
shell.build(redraw);
onMove(() => show({ moved: true }));
live.on('state', (state) => state === 'refused' && access.refused());
access.onChange(() => {
  live.start();
  show();
});
await access.refresh();
shell.drawAnchor();
live.start();
show();

function redraw() {
  shell.build(redraw);
  show();
}

async function show({ moved = false } = {}) {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const place = here();
  const view = place.view === 'locks' && place.name !== null ? detail : (VIEWS[place.view] ?? overview);
  document.title = `${place.name === null ? t(`view.${place.view}`) : plain(place.name)} · Leasehold`;
  const room = shell.enter(place, moved);
  await shown(view, { room, place, signal });
}

async function shown(view, context) {
  const { room, signal } = context;
  try {
    if (access.mayRead()) await view.show(context);
    else fill(room, access.door());
  } catch (problem) {
    if (signal.aborted) return;
    if (problem instanceof Problem && problem.status === 401) return access.refused();
    fill(room, trouble(problem, () => shown(view, context)));
    if (!(problem instanceof Problem)) throw problem;
  }
}
