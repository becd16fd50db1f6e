// Draws who waits for whom. Those who wait stand to the left of those they wait for; an edge that closes a circle runs back
// beneath, thick and marked. Big graphs are cut to what a person can read: circles first, then the longest waits. The list
// beneath the drawing has the rest, and is what a screen reader reads.

import { h, s } from './dom.js';
import { t } from './i18n.js';
import { plain } from './text.js';

const MOST = 60;
const BOX = { width: 168, height: 46 };
const GAP = { across: 164, down: 22 };
const LOW = 44;

/** The drawing. */
export function graph({ edges, owners }) {
  const all = joined(edges);
  const shown = chosen(all);
  const { nodes, width, height } = placed(shown);
  const drawing = s('svg', { class: 'graph', viewBox: `0 0 ${width} ${height}`, width, height, 'aria-hidden': 'true' },
    heads(), shown.map((edge) => line(edge, nodes)), [...nodes].map(([id, node]) => box(node, owners[id])));
  return h('div', { class: 'graph-frame', tabindex: '0', role: 'group', 'aria-label': t('waits.drawing') }, drawing,
    all.length > shown.length && h('p', { class: 'small quiet' }, t('waits.cut', { shown: shown.length, all: all.length })));
}

/** One edge for all that somebody wants of the same other. */
function joined(edges) {
  const by = new Map();
  for (const { from, to, name, waited_ms, cycle } of edges) {
    const one = by.get(`${from} ${to}`) ?? { from, to, names: [], waited_ms: 0, cycle: false };
    one.names.push(plain(name));
    one.waited_ms = Math.max(one.waited_ms, waited_ms);
    one.cycle ||= cycle;
    by.set(`${from} ${to}`, one);
  }
  return [...by.values()];
}

function chosen(edges) {
  return [...edges].sort((a, b) => b.cycle - a.cycle || b.waited_ms - a.waited_ms).slice(0, MOST);
}

/** A place for everybody: who has nothing to do with each other stands in bands of their own, one beneath the other. */
function placed(edges) {
  const out = new Map();
  for (const { from, to } of edges) {
    out.set(from, [...(out.get(from) ?? []), to]);
    if (!out.has(to)) out.set(to, []);
  }
  const depth = depths(out);
  const nodes = new Map();
  let top = 8;
  for (const band of bands(edges, out)) top = seated(band, depth, nodes, top) + (edges.some((edge) => edge.cycle && band.has(edge.from)) ? 40 : 0);
  const width = Math.max(...[...nodes.values()].map((node) => node.x)) + BOX.width + 8;
  return { nodes, width, height: top };
}

/** How many stand behind each owner: everybody is to the left of those it waits for, as far as circles allow. */
function depths(out) {
  const depth = new Map();
  const visit = (id, path) => {
    if (depth.has(id)) return depth.get(id);
    const next = out.get(id).filter((to) => !path.has(to) && to !== id);
    const deep = Math.max(-1, ...next.map((to) => visit(to, new Set([...path, id])))) + 1;
    depth.set(id, deep);
    return deep;
  };
  for (const id of out.keys()) visit(id, new Set());
  return depth;
}

/** Groups of owners that edges join, in whatever direction. */
function bands(edges, out) {
  const of = new Map([...out.keys()].map((id) => [id, new Set([id])]));
  for (const { from, to } of edges) {
    const [a, b] = [of.get(from), of.get(to)];
    if (a === b) continue;
    for (const id of b) of.set(id, a.add(id));
  }
  return new Set(of.values());
}

/** Gives the members of a band their places; returns where the next band begins. */
function seated(band, depth, nodes, top) {
  const deepest = Math.max(...[...band].map((id) => depth.get(id)));
  const filled = new Map();
  for (const id of band) {
    const column = deepest - depth.get(id);
    const row = filled.get(column) ?? 0;
    filled.set(column, row + 1);
    nodes.set(id, { column, x: 8 + column * (BOX.width + GAP.across), y: top + row * (BOX.height + GAP.down) });
  }
  return top + Math.max(...filled.values()) * (BOX.height + GAP.down);
}

function line(edge, nodes) {
  const from = nodes.get(edge.from);
  const to = nodes.get(edge.to);
  const forward = from.column < to.column;
  const kind = edge.cycle ? 'edge in-cycle' : 'edge';
  const spot = forward ? { x: from.x + BOX.width + GAP.across * 0.47, y: from.y * 0.55 + to.y * 0.45 + BOX.height / 2 - 6 }
    : { x: (from.x + to.x + BOX.width) / 2, y: Math.max(from.y, to.y) + BOX.height + LOW * 0.75 + 3 };
  return [s('path', { class: kind, d: forward ? ahead(from, to) : behind(from, to), 'marker-end': `url(#${edge.cycle ? 'head-cycle' : 'head'})` }),
    s('text', { class: kind, x: spot.x, y: spot.y, 'text-anchor': 'middle' }, short(edge.names.join(', '), 24), s('title', {}, edge.names.join('\n')))];
}

function ahead(from, to) {
  const [x1, y1, x2, y2] = [from.x + BOX.width, from.y + BOX.height / 2, to.x - 7, to.y + BOX.height / 2];
  const bend = (x2 - x1) / 2;
  return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}

/** Back beneath both. */
function behind(from, to) {
  const [x1, y1] = [from.x + BOX.width / 2, from.y + BOX.height];
  const [x2, y2] = [to.x + BOX.width / 2 + (from === to ? 24 : 0), to.y + BOX.height + 7];
  const low = Math.max(y1, y2) + LOW;
  return `M${x1} ${y1}C${x1} ${low} ${x2} ${low} ${x2} ${y2}`;
}

function box({ x, y }, who) {
  const [program, place] = who ? [plain(who.program), plain(`${who.host}:${who.pid}`)] : ['?', ''];
  return s('g', { class: 'node' }, s('rect', { x, y, width: BOX.width, height: BOX.height, rx: 8 }),
    s('text', { class: 'node-name', x: x + 12, y: y + 20 }, short(program, 20)), s('text', { class: 'node-place', x: x + 12, y: y + 36 }, short(place, 24)),
    s('title', {}, `${program} ${place}`));
}

function heads() {
  const head = (id, kind) => s('marker', { id, viewBox: '0 0 8 8', refX: 6, refY: 4, markerWidth: 7, markerHeight: 7, orient: 'auto', markerUnits: 'userSpaceOnUse' },
    s('path', { class: kind, d: 'M0 0L8 4L0 8Z' }));
  return s('defs', {}, head('head', 'arrow'), head('head-cycle', 'arrow in-cycle'));
}

function short(text, most) {
  const signs = [...text];
  return signs.length > most ? `${signs.slice(0, most - 1).join('')}…` : text;
}
