// Redlock for Node: it looks again every 200 ms, give or take 100. Speaks the protocol of ../README.md.
import fs from 'node:fs';
import readline from 'node:readline';
import Redis from 'ioredis';
import Redlock from 'redlock';

const [url, scenario, tasksWord, secondsWord] = process.argv.slice(2);
const tasks = Number(tasksWord);
const seconds = Number(secondsWord);
const QUANTILES = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999];

const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const hear = async () => (await lines.next()).value;
const say = (what) => fs.writeSync(1, `${JSON.stringify(what)}\n`);
const ready = async () => {
  fs.writeSync(1, 'ready\n');
  await hear();
};
const sleep = (time) => new Promise((done) => setTimeout(done, time * 1000));
const now = () => Number(process.hrtime.bigint()) * 1e-9;
const cpu = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) * 1e-6;
};
const quantiles = (latencies) => {
  latencies.sort((one, other) => one - other);
  return latencies.length ? QUANTILES.map((q) => latencies[Math.floor((latencies.length - 1) * q)] * 1e6) : [];
};
// It gives up after ten looks unless told otherwise; here everybody waits.
const connect = () => new Redlock([new Redis(url)], { retryCount: -1 });

async function warm(redlock) {
  for (let round = 0; round < 50; round += 1) {
    const held = await redlock.acquire([`bench:warm:${process.pid}`], 30000);
    await held.release();
  }
}

async function pairs() {
  const redlock = connect();
  await warm(redlock);
  await ready();
  let [done, over, measuring] = [0, false, false];
  const latencies = [];
  const repeat = async (number) => {
    while (!over) {
      const began = now();
      const held = await redlock.acquire([`bench:${number}`], 30000);
      await held.release();
      done += 1;
      if (measuring) latencies.push(now() - began);
    }
  };
  const all = Array.from({ length: tasks }, (_, number) => repeat(number));
  await sleep(0.3);
  const [before, used, began] = [done, cpu(), now()];
  measuring = true;
  await sleep(seconds);
  measuring = false;
  const said = { done: done - before, seconds: now() - began, cpu: cpu() - used };
  over = true;
  await Promise.all(all);
  say({ ...said, micros: quantiles(latencies) });
}

async function counter(pause) {
  const redlock = connect();
  const number = fs.openSync(process.env.BENCH_COUNTER, 'r+');
  await warm(redlock);
  await ready();
  const waits = [];
  const increment = async () => {
    const began = now();
    const held = await redlock.acquire(['bench:counter'], 30000);
    waits.push(now() - began);
    const digits = Buffer.alloc(20);
    fs.readSync(number, digits, 0, 20, 0);
    await (pause ? sleep(pause) : new Promise(setImmediate));
    fs.writeSync(number, String(Number(digits.toString()) + 1).padStart(20, '0'), 0);
    await held.release();
  };
  const [used, began] = [cpu(), now()];
  await Promise.all(Array.from({ length: tasks }, increment));
  say({ done: tasks, seconds: now() - began, cpu: cpu() - used, micros: quantiles(waits) });
}

async function turns() {
  const redlock = connect();
  await warm(redlock);
  await ready();
  let held;
  for (let word = await hear(); word; word = await hear()) {
    let at;
    if (word === 'acquire') {
      held = await redlock.acquire(['bench:turns'], 30000);
      at = process.hrtime.bigint();
    } else {
      at = process.hrtime.bigint();
      await held.release();
    }
    fs.writeSync(1, `${at}\n`);
  }
}

async function waiters() {
  const [holder, redlock] = [connect(), connect()];
  await warm(redlock);
  await holder.acquire(['bench:waiters'], 120000);
  let got = 0;
  const wait = async () => {
    const held = await redlock.acquire(['bench:waiters'], 30000);
    got += 1;
    await held.release();
  };
  for (let number = 0; number < tasks; number += 1) wait().catch(() => {});
  await sleep(1);
  await ready();
  const [used, began] = [cpu(), now()];
  await sleep(seconds);
  say({ done: got, seconds: now() - began, cpu: cpu() - used });
}

const version = () => say(JSON.parse(fs.readFileSync(new URL('node_modules/redlock/package.json', import.meta.url))).version);
const scenarios = { version, pairs, counter: () => counter(0), hold: () => counter(0.001), turns, waiters };
await scenarios[scenario]();
process.exit(0);
