// Time on the page. Stores tell ages and remainders; we add what has passed here since we were told, by a clock that
// never jumps. No clock of a server is compared with one of ours. One tick a second moves everything that moves.

const moving = new Set();
const seen = new WeakMap();

/** Milliseconds by a clock that only goes forward. */
export function now() {
  return performance.now();
}

/** When we first saw this answer: its ages count from here, however often it is drawn. */
export function firstSeen(answer) {
  if (!seen.has(answer)) seen.set(answer, now());
  return seen.get(answer);
}

/** Calls `draw` now and every second, until the element it belongs to has left the page. */
export function eachSecond(element, draw) {
  draw();
  moving.add({ element, draw, seen: false });
}

function tick() {
  for (const one of moving) {
    if (one.element.isConnected) {
      one.seen = true;
      one.draw();
    } else if (one.seen) {
      moving.delete(one);
    } else {
      one.seen = true;
    }
  }
}

setInterval(tick, 1000);
