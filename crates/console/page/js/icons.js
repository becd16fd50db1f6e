// The page's own small set of signs, drawn on a grid of 20. They say nothing to a screen reader: the text beside them does.

import { s } from './dom.js';

const PATHS = {
  overview: 'M3 11h6V3H3zM11 17h6V9h-6zM3 17h6v-3H3zM11 3v3h6V3z',
  locks: 'M5 9h10v8H5zM7 9V6a3 3 0 0 1 6 0v3M10 12.5v1.5',
  waits: 'M5 5.5a1.7 1.7 0 1 0 0-.1M15 5.5a1.7 1.7 0 1 0 0-.1M10 15.5a1.7 1.7 0 1 0 0-.1M6.8 5.5h6M6 7l3 7M14 7l-3 7',
  jobs: 'M10 5.5V10l3 2M10 3a7 7 0 1 0 .01 0',
  elections: 'M3.5 7l3.5 3 3-5.5 3 5.5 3.5-3-1.3 8H4.8z',
  audit: 'M5 3h7l3 3v11H5zM8 9h4M8 12h4M12 3v3h3',
  store: 'M4 5.5c0-3 12-3 12 0v9c0 3-12 3-12 0zM4 5.5c0 3 12 3 12 0M4 10c0 3 12 3 12 0',
  sun: 'M10 6.5a3.5 3.5 0 1 0 .01 0M10 2v1.5M10 16.5V18M2 10h1.5M16.5 10H18M4.3 4.3l1 1M14.7 14.7l1 1M4.3 15.7l1-1M14.7 5.3l1-1',
  moon: 'M16 12.2A6.8 6.8 0 0 1 7.8 4 6.8 6.8 0 1 0 16 12.2z',
  key: 'M6.5 6.8a3.2 3.2 0 1 0 .01 0M9.7 10H17v2.5M13.5 10v2.5',
  copy: 'M7 7h9v10H7zM4 13V3h9',
  check: 'M4 10.5l4 4 8-9',
  search: 'M8.5 3a5.5 5.5 0 1 0 .01 0M12.6 12.6L17 17',
  back: 'M12 4l-6 6 6 6',
  next: 'M8 4l6 6-6 6',
  up: 'M5 12l5-5 5 5',
  down: 'M5 8l5 5 5-5',
  close: 'M5 5l10 10M15 5L5 15',
  warning: 'M10 3l7.5 13.5h-15zM10 8v4M10 14.2v.3',
  broken: 'M5 9h10v8H5zM7 9V6a3 3 0 0 1 5.6-1.5M8.5 11.5l3 3M11.5 11.5l-3 3',
  pause: 'M7 4v12M13 4v12',
  play: 'M6 4l10 6-10 6z',
};

/** A sign, by name. */
export function icon(name) {
  const path = s('path', { d: PATHS[name] });
  return s('svg', { class: 'icon', viewBox: '0 0 20 20', 'aria-hidden': 'true', focusable: 'false' }, path);
}
