// Numbers and times as people read them: short, of steady width, in the reader's language and zone.

import { language, t } from './i18n.js';

/** Whole units and the next smaller one, from the longest. */
const UNITS = [
  ['d', 86_400, 'h', 3_600],
  ['h', 3_600, 'min', 60],
  ['min', 60, 's', 1],
];

/** A length of time in two units at most: `820 ms`, `4.2 s`, `3 min 5 s`, `2 d 4 h`. */
export function span(milliseconds) {
  const ms = Math.max(0, milliseconds);
  if (ms < 1000) return unit(Math.round(ms), 'ms');
  if (ms < 10_000) return unit((Math.floor(ms / 100) / 10).toFixed(1).replace('.0', ''), 's');
  const seconds = Math.floor(ms / 1000);
  const [name, size, below, least] = UNITS.find((one) => seconds >= one[1]) ?? ['s', 1, '', Infinity];
  const rest = Math.floor((seconds % size) / least);
  const whole = unit(Math.floor(seconds / size), name);
  return rest ? `${whole} ${unit(rest, below)}` : whole;
}

/** The same in whole seconds, for what is drawn every second. */
export function ticking(milliseconds) {
  const seconds = Math.floor(Math.max(0, milliseconds) / 1000);
  return seconds ? span(seconds * 1000) : unit(0, 's');
}

function unit(number, name) {
  return `${number}\u00a0${t(`unit.${name}`)}`;
}

/** A count, with separators. */
export function count(number) {
  return new Intl.NumberFormat(language()).format(number);
}

/** A count that must stay short. */
export function compact(number) {
  return number < 10_000 ? count(number)
    : new Intl.NumberFormat(language(), { notation: 'compact', maximumFractionDigits: 1 }).format(number);
}

/** A moment, in the reader's zone: the time alone if it was today. */
export function moment(iso) {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return t('unknown');
  const today = date.toDateString() === new Date().toDateString();
  const time = { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false };
  const day = today ? {} : { year: 'numeric', month: 'short', day: 'numeric' };
  return new Intl.DateTimeFormat(language(), { ...day, ...time }).format(date);
}

/** A moment in full, with its zone: what the pointer shows over the short form. */
export function exact(iso) {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return '';
  return new Intl.DateTimeFormat(language(), { dateStyle: 'full', timeStyle: 'long' }).format(date);
}
