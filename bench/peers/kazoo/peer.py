"""The Lock of kazoo: a thread for each task, woken when the node before its own is gone. Speaks the protocol of
../README.md, of which it knows version, counter and turns."""

import json
import os
import sys
import threading
import time

sys.path.insert(0, sys.argv[1])
import kazoo.version
from kazoo.client import KazooClient

URL, SCENARIO, TASKS = sys.argv[2], sys.argv[3], int(sys.argv[4])
QUANTILES = [0.01, 0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99, 0.999]


def say(what):
    print(json.dumps(what), flush=True)


def ready():
    print("ready", flush=True)
    sys.stdin.readline()


def quantiles(latencies):
    latencies = sorted(latencies)
    return [latencies[int((len(latencies) - 1) * q)] * 1e6 for q in QUANTILES] if latencies else []


def connect():
    client = KazooClient(hosts=URL.removeprefix("zookeeper://"), timeout=30)
    client.start()
    return client


def lock(client, name):
    return client.Lock(f"/peer-kazoo/{name}", str(os.getpid()))


def warm(client):
    own = lock(client, f"bench:warm:{os.getpid()}")
    for _ in range(50):
        own.acquire()
        own.release()


def counter():
    client = connect()
    number = os.open(os.environ["BENCH_COUNTER"], os.O_RDWR)
    warm(client)
    ready()
    waits = []

    def increment():
        own = lock(client, "bench:counter")
        began = time.perf_counter()
        own.acquire()
        waits.append(time.perf_counter() - began)
        before = int(os.pread(number, 20, 0))
        time.sleep(0)
        os.pwrite(number, b"%020d" % (before + 1), 0)
        own.release()

    cpu, began = time.process_time(), time.perf_counter()
    threads = [threading.Thread(target=increment, daemon=True) for _ in range(TASKS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    say({"done": len(waits), "seconds": seconds, "cpu": cpu, "micros": quantiles(waits)})


def turns():
    client = connect()
    warm(client)
    own = lock(client, "bench:turns")
    ready()
    for word in sys.stdin:
        if word.strip() == "acquire":
            own.acquire()
            at = time.monotonic_ns()
        else:
            at = time.monotonic_ns()
            own.release()
        say(at)


def version():
    say(kazoo.version.__version__)


{"version": version, "counter": counter, "turns": turns}[SCENARIO]()
# Not an orderly end: there may be threads that wait.
sys.stdout.flush()
os._exit(0)
