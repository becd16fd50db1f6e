// The frame around every view: the ways about, the live sign, the switches for language, colours and token.

import * as access from './access.js';
import { eachSecond, now } from './clock.js';
import { fill, h } from './dom.js';
import { compact, ticking } from './format.js';
import { icon } from './icons.js';
import { other, speak, t } from './i18n.js';
import * as live from './live.js';
import { address, here } from './router.js';
import { shown } from './text.js';
import * as theme from './theme.js';

const WAYS = ['overview', 'locks', 'waits', 'jobs', 'elections', 'audit', 'store'];
let frame = null;
let counts = null;

/** Draws the frame; `redraw` is called when everything has to be drawn anew. */
export function build(redraw) {
  const room = h('div', { class: 'room', tabindex: '-1', id: 'room' });
  const banner = h('div', { class: 'bar', hidden: true });
  // What ticks would be read out every second: who listens is told once.
  const alarm = h('div', { class: 'for-ears', role: 'alert' });
  frame = { room, banner, alarm, alarmed: null, ways: new Map(), anchor: h('a', { class: 'anchor', href: address('store') }) };
  const skip = h('a', { class: 'skip', href: '#room', onclick: jump }, t('skip'));
  const main = h('main', { class: 'main' }, head(redraw), banner, alarm, room);
  fill(document.body, skip, h('div', { class: 'shell' }, side(), main), h('div', { id: 'ears', class: 'for-ears', 'aria-live': 'polite' }));
  drawAnchor();
  drawCounts();
}

/** Makes room for a view, marks its way, and on a move takes the focus there. */
export function enter(place, moved) {
  for (const [view, way] of frame.ways) {
    if (view === place.view) way.setAttribute('aria-current', 'page');
    else way.removeAttribute('aria-current');
  }
  inSight(place.view);
  fill(frame.room, h('p', { class: 'quiet', role: 'status' }, t('loading')));
  if (moved) {
    frame.room.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  return frame.room;
}

/** On a phone the ways are a strip: the one we are on stays in sight. */
function inSight(view) {
  frame.ways.get(view)?.scrollIntoView({ block: 'nearest', inline: 'center' });
}

/** Says something to a screen reader. */
export function say(text) {
  document.getElementById('ears').textContent = text;
}

function jump(event) {
  event.preventDefault();
  frame.room.focus();
}

function side() {
  const brand = h('a', { class: 'brand', href: address('overview') }, h('img', { src: 'icon.svg', alt: '' }), 'Leasehold');
  const ways = h('div', { class: 'ways' }, WAYS.map(way));
  return h('nav', { class: 'side', 'aria-label': t('ways') }, brand, ways, frame.anchor);
}

function way(view) {
  const link = h('a', { href: address(view) }, icon(view), t(`view.${view}`), h('span', { class: 'count' }));
  frame.ways.set(view, link);
  return link;
}

function head(redraw) {
  return h('header', { class: 'head' }, sign(), h('span', { class: 'gap' }), languageSwitch(redraw), themeSwitch(), access.button());
}

function sign() {
  const text = h('span');
  const button = h('button', { class: 'live bare', type: 'button', onclick: toggle }, h('span', { class: 'lamp', 'aria-hidden': 'true' }), text);
  frame.sign = { button, text };
  eachSecond(button, drawSign);
  return button;
}

function drawSign() {
  const { button, text } = frame.sign;
  const { state, lastNews } = live.standing();
  const age = lastNews === null ? '' : ticking(now() - lastNews);
  button.dataset.state = state;
  button.title = t(state === 'paused' ? 'live.resume' : 'live.pause');
  const words = t(`live.${state}`, { age });
  if (text.textContent !== words) text.textContent = words;
  const stale = state === 'stale' && lastNews !== null;
  frame.banner.hidden = !stale && !counts?.error;
  const message = stale ? t('live.banner', { age }) : t('store.down', { error: counts?.error ?? '' });
  if (frame.banner.textContent !== message) frame.banner.textContent = message;
  const cause = frame.banner.hidden ? '' : stale ? 'stale' : counts.error;
  if (frame.alarmed === cause) return;
  frame.alarmed = cause;
  frame.alarm.textContent = cause && message;
}

function toggle() {
  if (live.standing().state === 'paused') live.start();
  else live.pause();
}

function languageSwitch(redraw) {
  const { tag, name } = other();
  const change = () => {
    speak(tag);
    redraw();
    document.getElementById('language').focus();
  };
  return h('button', { id: 'language', class: 'bare', type: 'button', lang: tag, onclick: change }, name);
}

function themeSwitch() {
  const button = h('button', { id: 'theme', class: 'bare', type: 'button' });
  const draw = () => {
    fill(button, icon(theme.isDark() ? 'sun' : 'moon'));
    button.setAttribute('aria-label', t(theme.isDark() ? 'theme.light' : 'theme.dark'));
    button.title = button.getAttribute('aria-label');
  };
  button.addEventListener('click', () => (theme.toggle(), draw()));
  draw();
  return button;
}

/** Shows which store this is, once the server has told. */
export function drawAnchor() {
  const store = access.session()?.store;
  frame.anchor.hidden = !store;
  if (!store) return;
  const level = h('span', {}, h('strong', {}, store.level), ` · ${t(`level.${store.level}`)}`);
  fill(frame.anchor, h('strong', {}, store.scheme), shown(store.address, { class: 'where', title: store.address }), level);
}

function drawCounts() {
  if (!counts) return;
  put('locks', counts.counts.names);
  put('waits', counts.counts.waiting);
}

function put(view, number) {
  const spot = frame.ways.get(view)?.querySelector('.count');
  const text = number ? compact(number) + (counts.complete ? '' : '+') : '';
  if (!spot || spot.textContent === text) return;
  spot.textContent = text;
  inSight(here().view);
}

live.on('overview', (news) => {
  counts = news;
  drawCounts();
});
live.on('state', drawSign);
access.onChange(drawAnchor);
