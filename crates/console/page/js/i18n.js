// The page's words in the reader's language. Every word the page says stands in english.js; chinese.js has the same keys.
// `{x}` in a sentence is filled in; what is filled in stays text.

import chinese from './chinese.js';
import english from './english.js';

const LANGUAGES = { en: english, zh: chinese };
const KEY = 'leasehold.language';
let current = 'en';

/** Chooses the language: as chosen before, else as the browser asks. */
export function begin() {
  const wished = remembered() ?? (navigator.languages ?? []).map((tag) => tag.slice(0, 2)).find((tag) => tag in LANGUAGES);
  speak(wished in LANGUAGES ? wished : 'en');
}

/** The language spoken now, as a tag that dates and numbers understand. */
export function language() {
  return current === 'zh' ? 'zh-CN' : 'en';
}

/** The other language, and what it calls itself. */
export function other() {
  return current === 'zh' ? { tag: 'en', name: 'English' } : { tag: 'zh', name: '中文' };
}

/** Speaks this language from now on; views have to be drawn anew. */
export function speak(tag) {
  current = tag;
  document.documentElement.lang = language();
  try {
    localStorage.setItem(KEY, tag);
  } catch {
    // A browser that keeps nothing still speaks as asked.
  }
}

/** A sentence. A key that is missing shows itself, so that it is found. */
export function t(key, values = {}) {
  const words = LANGUAGES[current][key] ?? english[key] ?? key;
  return words.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

/** A sentence with elements filled in: what has to go to the page as a list of children. */
export function parts(key, values) {
  const words = LANGUAGES[current][key] ?? english[key] ?? key;
  return words.split(/(\{\w+\})/g).map((part) => values[part.slice(1, -1)] ?? part);
}

function remembered() {
  try {
    return localStorage.getItem(KEY) ?? undefined;
  } catch {
    return undefined;
  }
}
