"""The Lock of redis-py, asyncio: it looks again every 100 ms. Speaks the protocol of ../README.md."""

import asyncio
import json
import os
import sys
import time

sys.path.insert(0, sys.argv[1])
import redis
import redis.asyncio

URL, SCENARIO, TASKS, SECONDS = sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5])
QUANTILES = [0.01, 0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99, 0.999]


def say(what):
    print(json.dumps(what), flush=True)


async def hear():
    return (await asyncio.to_thread(sys.stdin.readline)).strip()


async def ready():
    print("ready", flush=True)
    await hear()


def quantiles(latencies):
    latencies = sorted(latencies)
    return [latencies[int((len(latencies) - 1) * q)] * 1e6 for q in QUANTILES] if latencies else []


def connect(connections):
    return redis.asyncio.Redis.from_url(URL, max_connections=connections + 10)


def lock(client, name):
    return client.lock(name, timeout=30, thread_local=False)


async def warm(client):
    own = lock(client, f"bench:warm:{os.getpid()}")
    for _ in range(50):
        await own.acquire()
        await own.release()


async def pairs():
    client = connect(TASKS)
    await warm(client)
    await ready()
    state = {"done": 0, "over": False, "measuring": False}
    latencies = []

    async def repeat(number):
        own = lock(client, f"bench:{number}")
        while not state["over"]:
            began = time.perf_counter()
            await own.acquire()
            await own.release()
            state["done"] += 1
            if state["measuring"]:
                latencies.append(time.perf_counter() - began)

    tasks = [asyncio.create_task(repeat(number)) for number in range(TASKS)]
    await asyncio.sleep(0.3)
    before, cpu, began = state["done"], time.process_time(), time.perf_counter()
    state["measuring"] = True
    await asyncio.sleep(SECONDS)
    state["measuring"] = False
    done, seconds, cpu = state["done"] - before, time.perf_counter() - began, time.process_time() - cpu
    state["over"] = True
    await asyncio.gather(*tasks)
    say({"done": done, "seconds": seconds, "cpu": cpu, "micros": quantiles(latencies)})


async def counter(pause):
    client = connect(TASKS)
    number = os.open(os.environ["BENCH_COUNTER"], os.O_RDWR)
    await warm(client)
    await ready()
    waits = []

    async def increment():
        own = lock(client, "bench:counter")
        began = time.perf_counter()
        await own.acquire()
        waits.append(time.perf_counter() - began)
        before = int(os.pread(number, 20, 0))
        await asyncio.sleep(pause)
        os.pwrite(number, b"%020d" % (before + 1), 0)
        await own.release()

    cpu, began = time.process_time(), time.perf_counter()
    await asyncio.gather(*[increment() for _ in range(TASKS)])
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    say({"done": TASKS, "seconds": seconds, "cpu": cpu, "micros": quantiles(waits)})


async def turns():
    client = connect(2)
    await warm(client)
    own = lock(client, "bench:turns")
    await ready()
    while word := await hear():
        if word == "acquire":
            await own.acquire()
            at = time.monotonic_ns()
        else:
            at = time.monotonic_ns()
            await own.release()
        say(at)


async def waiters():
    holder, client = connect(2), connect(TASKS)
    await warm(client)
    held = holder.lock("bench:waiters", timeout=120, thread_local=False)
    await held.acquire()
    got = []

    async def wait():
        own = lock(client, "bench:waiters")
        await own.acquire()
        got.append(1)
        await own.release()

    tasks = [asyncio.create_task(wait()) for _ in range(TASKS)]
    await asyncio.sleep(1)
    await ready()
    cpu, began = time.process_time(), time.perf_counter()
    await asyncio.sleep(SECONDS)
    say({"done": len(got), "seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu})
    for task in tasks:
        task.cancel()


SCENARIOS = {
    "pairs": pairs,
    "counter": lambda: counter(0),
    "hold": lambda: counter(0.001),
    "turns": turns,
    "waiters": waiters,
}

if SCENARIO == "version":
    say(redis.__version__)
else:
    asyncio.run(SCENARIOS[SCENARIO]())
os._exit(0)
