// Pausing a job and letting it go on. A pause stops nothing that runs; it wants a reason, which everybody who looks at the job
// is shown.

import * as access from './access.js';
import { act, ofJob } from './api.js';
import { ask } from './dialog.js';
import { h } from './dom.js';
import { t } from './i18n.js';
import { say } from './shell.js';
import { plain, shown } from './text.js';

/** Asks why, and pauses it. Resolves to whether that was done. */
export function pause({ name }) {
  const reason = { name: 'reason', label: t('pause.reason'), hint: t('pause.reason.hint'), rows: 2, maxlength: 500 };
  return asked('pause', name, [reason], ({ reason }) => reason.trim() !== '');
}

/** Asks once more, and lets it go on. Resolves to whether that was done. */
export function resume({ name }) {
  return asked('resume', name, [], () => true);
}

async function asked(what, name, fields, ready) {
  if (!access.mayAct() && !(await access.enter(t('access.why-pause')))) return false;
  const by = { name: 'by', label: t('break.by'), maxlength: 100 };
  const done = await ask({
    title: t(`${what}.title`), accept: t(`${what}.do`), body: [h('div', { class: 'holding' }, h('p', { class: 'holding-name' }, shown(name))), h('p', {}, t(`${what}.text`))],
    fields: [...fields, by], ready, act: (values) => sent(what, name, values),
  });
  if (done) say(t(`${what}.done`, { name: plain(name) }));
  return done;
}

async function sent(what, name, values) {
  const [path, query] = ofJob(name, what);
  const given = Object.entries(values).map(([key, value]) => [key, value.trim()]).filter(([, value]) => value);
  try {
    await act(path, query, Object.fromEntries(given));
  } catch (problem) {
    throw new Error(words(problem), { cause: problem });
  }
}

function words(problem) {
  if (problem.status === 401 || problem.status === 403) return t('pause.refused');
  return problem.status === 0 ? t('trouble.unreachable') : plain(problem.message);
}
