// Text of others, made fit to be seen: names, labels, hosts and programs come from whoever wrote them to the store.
// Markup in them is harmless here (see dom.js). What remains are characters that draw nothing or turn the reading
// direction, with which one name can pass for another: they are written out, as the command line does.

import { h } from './dom.js';

const HOSTILE =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e007f}\u{e0100}-\u{e01ef}]/gu;

/** The text with every character that cannot be seen written out, as a string. */
export function plain(text) {
  return String(text).replace(HOSTILE, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}

/** The same as an element, in which what was written out can be told from what was there. */
export function shown(text, attributes = {}) {
  const parts = [];
  let from = 0;
  for (const match of String(text).matchAll(HOSTILE)) {
    if (match.index > from) parts.push(text.slice(from, match.index));
    parts.push(h('span', { class: 'escape' }, plain(match[0])));
    from = match.index + match[0].length;
  }
  parts.push(String(text).slice(from));
  return h('bdi', attributes, ...parts);
}
