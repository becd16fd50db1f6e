// What we have seen of leases. A store tells how long a lease still runs, not how long it was nor when it was renewed; so we
// remember, for each acquisition seen, the longest it had left, and notice a renewal when it has more left than it should.
// Everything here is what this page saw since it was opened, and the words that show it say so.

import { firstSeen, now } from './clock.js';

const MOST = 4096;
const SLACK = 400;
const RENEWALS = 40;
const SOON = 10_000;
const USUAL = 30_000;
const seen = new Map();

/** Takes note of a holder as the server told it, once for each answer, and returns what is known of its lease. */
export function observe(holder) {
  const at = firstSeen(holder);
  const lease = seen.get(holder.id) ?? fresh(holder, at);
  if (at < lease.told || lease.from === holder) return lease;
  lease.from = holder;
  const expected = lease.ends - at;
  if (holder.expires_in_ms > expected + SLACK) renewed(lease, holder, at);
  lease.longest = Math.max(lease.longest, holder.expires_in_ms);
  lease.ends = at + holder.expires_in_ms;
  lease.told = at;
  lease.began = at - holder.held_ms;
  keep(holder.id, lease);
  return lease;
}

/** How long it still runs, by our clock. */
export function remaining(lease) {
  return Math.max(0, lease.ends - now());
}

/** How much of the lease is left, from 0 to 1. */
export function share(lease) {
  return Math.min(1, remaining(lease) / full(lease));
}

/** Whether it runs out soon though it should long have been renewed. */
export function isExpiring(lease) {
  return remaining(lease) < SOON && share(lease) < 0.4;
}

/** When the holder last gave a sign of life, in milliseconds ago; null if we saw none yet. */
export function signAge(lease) {
  return lease.renewals.length ? now() - lease.renewals.at(-1) : null;
}

/** What a lease is when full: the most we saw of it. Until we saw a renewal it may be more: the usual length, if it was held so long. */
function full(lease) {
  return Math.max(1, lease.longest, lease.renewals.length ? 0 : lease.guess);
}

function fresh({ expires_in_ms: left, held_ms: held }, at) {
  const guess = Math.min(USUAL, held + left);
  return { longest: left, guess, ends: at + left, told: at, watched: at, renewals: [], began: at - held };
}

/** A lease that has more left than it should was renewed: since then it has drained from its full length. */
function renewed(lease, holder, at) {
  const drained = Math.max(0, lease.longest - holder.expires_in_ms);
  lease.renewals.push(Math.max(at - drained, lease.told));
  if (lease.renewals.length > RENEWALS) lease.renewals.shift();
}

/** The map stays bounded: whoever was not seen for longest goes first. */
function keep(id, lease) {
  seen.delete(id);
  seen.set(id, lease);
  if (seen.size > MOST) seen.delete(seen.keys().next().value);
}
