// The live chart: what was acquired, waited for and lost in the last quarter of an hour. Drawn by hand as SVG; line, dashes
// and diamonds tell the three apart without colour. The pointer or the arrow keys read single points, and a sentence
// says the same to a screen reader.

import { fill, h, s } from './dom.js';
import { count, moment, span } from './format.js';
import { t } from './i18n.js';

const HEIGHT = 232;
const EDGE = { top: 14, right: 12, bottom: 26, left: 36 };
const SHOWN = 180;
const NARROW = 480;

/** A chart that `update({ step_ms, points })` draws. */
export function chart() {
  const drawing = h('div', { class: 'chart-area', tabindex: '0', role: 'img' });
  const readout = h('p', { class: 'chart-readout', 'aria-live': 'polite' });
  const element = h('figure', { class: 'chart' }, legend(), drawing, readout);
  const view = { drawing, readout, series: { step_ms: 5000, points: [] }, at: null };
  drawing.addEventListener('pointermove', (event) => point(view, nearest(view, event)));
  drawing.addEventListener('pointerleave', () => point(view, null));
  drawing.addEventListener('blur', () => point(view, null));
  drawing.addEventListener('keydown', (event) => walk(view, event));
  new ResizeObserver(() => draw(view)).observe(drawing);
  const update = (series) => {
    view.series = series;
    draw(view);
  };
  return { element, update };
}

function legend() {
  const entry = (kind) => h('li', { class: kind }, sample(kind), t(`chart.${kind}`));
  return h('ul', { class: 'legend' }, ['acquires', 'waits', 'losses'].map(entry));
}

function sample(kind) {
  const shape = kind === 'losses' ? s('path', { class: kind, d: diamond(11, 5, 4) })
    : s('path', { class: kind, d: 'M1 5H21' });
  return s('svg', { class: 'sample', viewBox: '0 0 22 10', 'aria-hidden': 'true' }, shape);
}

function draw(view) {
  const width = Math.max(260, view.drawing.clientWidth);
  const scale = scaled(view.series, width);
  view.scale = scale;
  const svg = s('svg', { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, 'aria-hidden': 'true' },
    grid(scale), curves(scale), view.at !== null && cursor(scale, view.at));
  fill(view.drawing, svg);
  view.drawing.setAttribute('aria-label', summary(view.series));
}

/** Where a point lies: time to the right, counts upwards, the newest at the right edge. The very last is still filling. A server
    that could not look has left points out: their place stays empty. */
function scaled({ step_ms, points }, width) {
  const per = width < NARROW ? 3 : 1;
  const shown = gathered(points.slice(0, -1), per, step_ms).filter((one, _, all) => all.at(-1).time - one.time < step_ms * SHOWN);
  const most = nice(Math.max(4, ...shown.map((one) => Math.max(one.acquires, one.waits, one.lost))));
  const wide = width - EDGE.left - EDGE.right;
  const high = HEIGHT - EDGE.top - EDGE.bottom;
  const whole = step_ms * (SHOWN - 1);
  const newest = shown.at(-1)?.time ?? 0;
  const x = (index) => EDGE.left + wide - ((newest - shown[index].time) * wide) / whole;
  const y = (value) => EDGE.top + high - (value * high) / most;
  return { shown, most, x, y, width, wide, newest, whole, gap: step_ms * per * 3 };
}

/** Points put together by so many, where there is no room for each; always the same ones, so that nothing flickers. */
function gathered(points, per, step) {
  const groups = new Map();
  for (const one of points) {
    const time = Date.parse(one.at);
    const key = Math.floor(time / step / per);
    const sum = groups.get(key) ?? { at: one.at, time, acquires: 0, waits: 0, lost: 0 };
    sum.acquires += one.acquires;
    sum.waits += one.waits;
    sum.lost += one.losses + one.broken;
    groups.set(key, sum);
  }
  return [...groups.values()];
}

/** The next number that is round and has a half: 4, 6, 8, 10, 20, 30, ... */
function nice(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 3, 4, 6, 8, 10].map((factor) => factor * power).find((round) => round >= value);
}

function grid({ most, y, width, wide, whole }) {
  const lines = [0, 0.5, 1].map((part) => {
    const at = y(most * part);
    return [s('line', { class: 'grid', x1: EDGE.left, x2: width - EDGE.right, y1: at, y2: at }),
      s('text', { class: 'tick', x: EDGE.left - 8, y: at + 4, 'text-anchor': 'end' }, count(most * part))];
  });
  const times = [0, 1 / 3, 2 / 3, 1].map((part) => s('text', {
    class: 'tick', x: EDGE.left + wide * part, y: HEIGHT - 6, 'text-anchor': part === 0 ? 'start' : part === 1 ? 'end' : 'middle',
  }, part === 1 ? t('chart.now') : `−${span(Math.round((whole * (1 - part)) / 60_000) * 60_000)}`));
  return [lines, times];
}

function curves(scale) {
  const { shown, x, y, gap } = scale;
  if (shown.length < 2) return words(scale, t('chart.soon'));
  if (shown.every((one) => !one.acquires && !one.waits && !one.lost)) return words(scale, t('chart.nothing'));
  const follows = (index) => index > 0 && shown[index].time - shown[index - 1].time <= gap;
  const ends = (index) => index === shown.length - 1 || !follows(index + 1);
  const spot = (index, key) => `${x(index).toFixed(1)} ${y(shown[index][key]).toFixed(1)}`;
  const path = (key) => shown.map((_, index) => `${follows(index) ? 'L' : 'M'}${spot(index, key)}`).join('');
  const ground = (index) => `${x(index).toFixed(1)} ${y(0)}`;
  const area = shown.map((_, index) => `${follows(index) ? '' : `M${ground(index)}`}L${spot(index, 'acquires')}${ends(index) ? `L${ground(index)}Z` : ''}`).join('');
  const losses = shown.map((one, index) => one.lost && [
    s('path', { class: 'losses stem', d: `M${x(index)} ${y(0)}V${y(one.lost)}` }),
    s('path', { class: 'losses', d: diamond(x(index), y(one.lost), 4.5) }),
  ]);
  return [s('path', { class: 'acquires area', d: area }), s('path', { class: 'acquires', d: path('acquires') }),
    s('path', { class: 'waits', d: path('waits') }), losses.filter(Boolean)];
}

function words({ width }, text) {
  return s('text', { class: 'tick', x: (EDGE.left + width) / 2, y: HEIGHT / 2 - 20, 'text-anchor': 'middle' }, text);
}

function diamond(x, y, size) {
  return `M${x} ${y - size}L${x + size} ${y}L${x} ${y + size}L${x - size} ${y}Z`;
}

function cursor({ shown, x, y, most }, at) {
  const one = shown[at];
  if (!one) return null;
  const dots = ['acquires', 'waits'].map((key) => s('circle', { class: `dot ${key}`, cx: x(at), cy: y(one[key]), r: 3.5 }));
  return [s('line', { class: 'cursor', x1: x(at), x2: x(at), y1: y(most), y2: y(0) }), dots];
}

function nearest({ scale, drawing }, event) {
  const across = event.clientX - drawing.getBoundingClientRect().left;
  const { shown, wide, newest, whole } = scale;
  const time = newest - ((EDGE.left + wide - across) * whole) / wide;
  const nearer = (best, one, index) => (Math.abs(one.time - time) < Math.abs(shown[best].time - time) ? index : best);
  return shown.length ? shown.reduce(nearer, 0) : null;
}

function walk(view, event) {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!by || !view.scale.shown.length) return;
  event.preventDefault();
  const last = view.scale.shown.length - 1;
  point(view, Math.min(last, Math.max(0, (view.at ?? last + 1) + by)));
}

function point(view, at) {
  view.at = at;
  const one = at === null ? null : view.scale.shown[at];
  view.readout.textContent = one
    ? t('chart.readout', { at: moment(one.at), acquires: one.acquires, waits: one.waits, losses: one.lost })
    : '';
  draw(view);
}

function summary({ points }) {
  const sum = (key) => points.reduce((total, one) => total + one[key], 0);
  return t('chart.summary', { acquires: sum('acquires'), waits: sum('waits'), losses: sum('losses') + sum('broken') });
}
