// What the store has to say of itself: each finding with why it matters and what to do. The sentences are the server's and
// are English.

import { command } from './copy.js';
import { h } from './dom.js';
import { t } from './i18n.js';
import { mark } from './parts.js';
import { shown } from './text.js';

const TONES = { good: 'calm', note: 'plain', warning: 'wait', danger: 'alarm' };
const GRAVITY = ['danger', 'warning', 'note', 'good'];

/** The gravest first. */
export function findings(all) {
  const order = [...all].sort((a, b) => GRAVITY.indexOf(a.severity) - GRAVITY.indexOf(b.severity));
  return h('ul', { class: 'findings' }, order.map(one));
}

function one(finding) {
  const { severity, topic, what, why, remedy } = finding;
  return h('li', {}, h('div', { class: 'finding-head' }, mark(TONES[severity] ?? 'plain', t(`severity.${severity}`)), h('code', { class: 'quiet' }, shown(topic))),
    h('div', { lang: 'en' }, h('p', {}, shown(what)), why && h('p', { class: 'quiet' }, shown(why)), remedy && h('p', {}, shown(remedy))),
    finding.command && command(finding.command));
}
