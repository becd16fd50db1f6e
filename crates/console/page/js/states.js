// What stands where there is nothing to show: because there is nothing, or because something went wrong. Both say what to
// do next.

import { command } from './copy.js';
import { h } from './dom.js';
import { icon } from './icons.js';
import { t } from './i18n.js';
import { plain } from './text.js';

/** Nothing there, and how to change that; `note` is what the server has to say of it. */
export function empty(sign, title, text, line = null, note = null) {
  return h('section', { class: 'empty' }, icon(sign), h('h2', {}, title), h('p', {}, text), line && command(line), note && h('p', { class: 'small', lang: 'en' }, plain(note)));
}

/** Something went wrong; `again` tries once more. */
export function trouble(problem, again) {
  const unreachable = problem.status === 0;
  const text = unreachable ? t('trouble.unreachable') : plain(problem.message);
  return h('section', { class: 'empty fault-box', role: 'alert' }, icon('warning'),
    h('h2', {}, t(unreachable ? 'trouble.title.unreachable' : 'trouble.title')), h('p', {}, text),
    h('button', { type: 'button', onclick: again }, t('again')));
}
