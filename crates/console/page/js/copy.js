// Copying: a command or a name with a button beside it. Where the browser has no clipboard for us the text can be selected.
// A text with control characters has no button: pasted into a shell they would be keys.

import { fill, h } from './dom.js';
import { icon } from './icons.js';
import { t } from './i18n.js';
import { shown } from './text.js';

const KEYS = /[\u0000-\u001f\u007f-\u009f]/;

/** A line to be copied whole. */
export function command(line) {
  return h('div', { class: 'command' }, h('code', {}, shown(line)), copier(line));
}

/** A button that copies this text; none if it must not be pasted. */
export function copier(text) {
  if (KEYS.test(text)) return null;
  const button = h('button', { class: 'bare copier', type: 'button', 'aria-label': t('copy'), title: t('copy') }, icon('copy'));
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(text);
      say(button, 'check', t('copied'));
    } catch {
      say(button, 'close', t('copy.refused'));
    }
  });
  return button;
}

function say(button, sign, words) {
  fill(button, icon(sign), h('span', { class: 'for-ears', role: 'status' }, words));
  button.title = words;
  setTimeout(() => {
    fill(button, icon('copy'));
    button.title = t('copy');
  }, 1600);
}
