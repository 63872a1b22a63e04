"""What a cluster spends on an id, beside a single service: `python -m benchmarks.cluster`.

The same ids are sent over HTTP to `panprivacy serve`, and to `panprivacy cluster` with 1, 2 and 4
shards on this machine: with Ray, a NATS server, and the launcher. They take turns. Seconds are of
the processor, user and system, of all threads of a process, as the kernel counts them. From the
same numbers comes a model of a cluster of 100 nodes. Writes the tables of docs/scale.md, and exits
with 1 where a shard spends more on an id than `REACH` times what the service spends. It takes some
ten minutes; `--turns 1` takes three.
"""

from __future__ import annotations

import argparse
import http.client
import math
import statistics
import sys
import tempfile
import time
import urllib.parse
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from tests.cluster.nats import NatsServer, found_nats
from tests.cluster.running import RunningCluster
from tests.service.running import HARDENED, Service

from benchmarks.continual import fill
from benchmarks.counters import marked, table
from panprivacy.cluster.broker import Broker
from panprivacy.cluster.envelopes import Opener, seal
from panprivacy.cluster.messages import Round, read_message
from panprivacy.cluster.publisher import Publisher
from panprivacy.cluster.queues import Queue
from panprivacy.cluster.rounds import TICK
from panprivacy.cluster.routing import Router
from panprivacy.privacy.coins import SystemCoins
from panprivacy.service.batches import Reception
from panprivacy.service.config.stream import IdKind, StreamConfig
from panprivacy.statistics.merging import Merger

Table = tuple[list[str], list[list[str]]]

PAGE = Path(__file__).parents[1] / "docs" / "scale.md"
SHARDS = (1, 2, 4)
TURNS = 3
REACH = 1.25
BODY = 100_000
"""Ids of a request."""
BODIES = {"numbers": 240, "texts": 60}
SENDERS = 4
REST_SECONDS = 5.0
PUBLISHERS = 8
"""That send nothing, each tick: what a message costs in which there is nothing."""
STREAMS = """
[streams.numbers]
epsilon = 1
window = "1d"
ids = "integers"
[[streams.numbers.stat]]
name = "distinct"
expected = "10_000:1e8"

[streams.texts]
epsilon = 1
window = "1d"
[[streams.texts.stat]]
name = "distinct"
expected = "10_000:1e8"
"""
KINDS = {"numbers": "application/octet-stream", "texts": "application/vnd.apache.arrow.stream"}
PARTS = ("shards", "gateway", "NATS", "Ray")
KEY = b"sixteen letters!"
_SCHEDULED = 2
"""With the number of a process it makes the number of its clock, as clock_getcpuclockid does."""


# What runs


@dataclass(frozen=True)
class Scene:
    """A service or a cluster that runs, and the broker of a cluster.

    Args:
        service: is sent to.
        nats: None for a service.
    """

    service: Service
    nats: NatsServer | None = None

    def seconds(self) -> Counter[str]:
        """Of the processor so far, by part; the one process of a service is its shard."""
        if self.nats is None or not isinstance(self.service, RunningCluster):
            return Counter(shards=processor_seconds(self.service.pid))
        workers, found = (
            set(self.service.workers),
            Counter[str](NATS=processor_seconds(self.nats.pid)),
        )
        for process, _ in self.service.processes():
            part = "Ray"
            if process in workers:
                part = "shards"
            elif process == self.service.pid:
                part = "gateway"
            found[part] += processor_seconds(process)
        return found

    def traffic(self) -> Counter[str]:
        """Messages and bytes that the broker got and gave so far."""
        if self.nats is None:
            return Counter()
        told = self.nats.told("varz")
        return Counter(
            {name: told[name] for name in ("in_msgs", "out_msgs", "in_bytes", "out_bytes")}
        )

    def send(self, stream: str, bodies: Sequence[bytes]) -> None:
        """Send all bodies; when it returns, sealed states have them."""
        shares = [bodies[at:-1:SENDERS] for at in range(SENDERS)]
        with ThreadPoolExecutor(SENDERS) as senders:
            list(senders.map(lambda share: self._post(stream, share), shares))
        self._post(stream, bodies[-1:], durable=1)

    def _post(self, stream: str, bodies: Sequence[bytes], durable: int = 0) -> None:
        where = urllib.parse.urlsplit(self.service.url())
        connection = http.client.HTTPConnection(where.netloc, timeout=120)
        headers = {**self.service.headers("ingest"), "Content-Type": KINDS[stream]}
        path = f"/v1/streams/{stream}/updates?durable={durable}"
        for body in bodies:
            while True:
                connection.request("POST", path, body, headers)
                answer = connection.getresponse()
                said = answer.read()
                if answer.status in {200, 202}:
                    break
                if answer.status not in {429, 503}:
                    raise RuntimeError(said)
                time.sleep(0.05)
        connection.close()


def processor_seconds(process: int) -> float:
    """User and system, of all threads so far, to the nanosecond.

    In /proc they are cut to hundredths of a second, which is a tenth of what is measured here.
    """
    return time.clock_gettime((~process << 3) | _SCHEDULED)


@contextmanager
def running(shards: int) -> Iterator[Scene]:
    """A cluster of so many shards; with 0, a single service."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if not shards:
            service = stack.enter_context(Service(folder, STREAMS, command=HARDENED))
            yield Scene(service.begin())
            return
        nats = stack.enter_context(NatsServer(found_nats(), memory=4 << 30))
        cluster = RunningCluster(folder, nats.url, STREAMS, queue=256 << 20, command=HARDENED)
        stack.enter_context(cluster).start("--shards", str(shards))
        yield Scene(cluster, nats)
        cluster.stop()


# Measuring


@dataclass
class Costs:
    """What was measured of one number of shards, in all turns.

    Args:
        rest: processor seconds a second of each part, where nothing comes; before the ids of a
            turn, and after them.
        message: processor seconds of a message in which there is nothing, of each part.
        whole: nanoseconds an id of each part, by stream.
        clock: nanoseconds of the clock for each id, by stream.
        hops: bytes an id into and out of the broker, by stream.
        empty: bytes of a message in which there is nothing, into the broker.
        period: seconds from one round to the next, where nothing comes.
        sealed: bytes of the sealed state of a shard.
    """

    rest: list[Counter[str]] = field(default_factory=list)
    message: list[Counter[str]] = field(default_factory=list)
    whole: dict[str, list[Counter[str]]] = field(default_factory=dict)
    clock: dict[str, list[float]] = field(default_factory=dict)
    hops: dict[str, list[Counter[str]]] = field(default_factory=dict)
    empty: list[float] = field(default_factory=list)
    period: list[float] = field(default_factory=list)
    sealed: int = 0

    def an_id(self, stream: str, part: str) -> float:
        """Nanoseconds, without what the same processes spend at rest in the same time."""
        rests = [
            (one[part] + other[part]) / 2 for one, other in zip(*[iter(self.rest)] * 2, strict=True)
        ]
        each = zip(self.whole[stream], self.clock[stream], rests, strict=True)
        return statistics.median(whole[part] - rest * clock for whole, clock, rest in each)


def median(counts: Sequence[Counter[str]], part: str) -> float:
    """Of all turns."""
    return statistics.median(one[part] for one in counts)


def scaled(spent: Counter[str], by: float) -> Counter[str]:
    """Each divided."""
    return Counter({name: value / by for name, value in spent.items()})  # type: ignore[misc]


def less(one: Counter[str], other: Counter[str]) -> Counter[str]:
    """The difference, which may be negative."""
    found = Counter(one)
    found.subtract(other)
    return found


def spent(scene: Scene, work: Callable[[], object]) -> tuple[float, Counter[str], Counter[str]]:
    """Seconds of the clock, of the processor, and traffic of some work."""
    seconds, traffic, began = scene.seconds(), scene.traffic(), time.monotonic()
    work()
    elapsed = time.monotonic() - began
    return elapsed, less(scene.seconds(), seconds), less(scene.traffic(), traffic)


def sent(scene: Scene, shards: int) -> int:
    """How many messages there were of the stream of numbers, to all shards."""
    with closing(Broker(scene.nats.url)) as broker:  # type: ignore[union-attr]
        queues = [Queue(scene.service.name, "numbers", shards, one) for one in range(shards)]
        return sum(broker.last(queue).sequence for queue in queues)


def turn(shards: int, bodies: dict[str, list[bytes]], costs: Costs) -> None:
    """Start it, and measure all of it once."""
    with running(shards) as scene:
        for stream, several in bodies.items():
            scene.send(stream, several[:4])  # so that everything has been touched
        time.sleep(1.0)
        before = sent(scene, shards) if shards else 0
        elapsed, cost, quiet = spent(scene, lambda: time.sleep(REST_SECONDS))
        rest = scaled(cost, elapsed)
        costs.rest.append(rest)
        if shards:
            costs.period.append(elapsed / (sent(scene, shards) - before) * shards)
            measure_empty(scene, shards, costs, scaled(quiet, elapsed), rest)
        for stream, several in bodies.items():
            count = BODY * len(several)
            elapsed, cost, moved = spent(scene, lambda s=stream, b=several: scene.send(s, b))
            costs.whole.setdefault(stream, []).append(scaled(cost, count * 1e-9))
            costs.clock.setdefault(stream, []).append(elapsed / (count * 1e-9))
            extra = Counter({name: quiet[name] / REST_SECONDS * elapsed for name in quiet})
            costs.hops.setdefault(stream, []).append(scaled(less(moved, extra), count))
        elapsed, cost, _ = spent(scene, lambda: time.sleep(REST_SECONDS))
        costs.rest.append(scaled(cost, elapsed))
        sealed = [one.stat().st_size for one in scene.service.directory.glob("*.sealed")]
        costs.sealed = max(sealed)


def measure_empty(
    scene: Scene, shards: int, costs: Costs, quiet: Counter[str], rest: Counter[str]
) -> None:
    """What a message costs in which there is nothing: other publishers send such."""
    with ExitStack() as stack:
        for _ in range(PUBLISHERS):
            stack.enter_context(Publisher(scene.nats.url, "numbers", name=scene.service.name))  # type: ignore[union-attr]
        time.sleep(1.0)
        before, began = sent(scene, shards), time.process_time()
        elapsed, cost, moved = spent(scene, lambda: time.sleep(REST_SECONDS))
        own = time.process_time() - began
        messages = sent(scene, shards) - before - shards * elapsed / costs.period[-1]
    extra = scaled(less(scaled(cost, elapsed), rest), messages / elapsed)
    extra["publisher"] = own / messages  # type: ignore[assignment]
    costs.message.append(extra)
    costs.empty.append((moved["in_bytes"] / elapsed - quiet["in_bytes"]) * elapsed / messages)


def made_bodies() -> dict[str, list[bytes]]:
    """The bodies of both streams; each id comes once or twice."""
    draw = np.random.default_rng(1)
    numbers = [
        draw.integers(0, 1 << 62, BODY).astype("<i8").tobytes() for _ in range(BODIES["numbers"])
    ]
    texts = []
    for number in range(BODIES["texts"]):
        column = pa.array([f"visitor-{number:03}{one:06}" for one in range(BODY)])
        sink = pa.BufferOutputStream()
        batch = pa.record_batch([column], names=["user"])
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        texts.append(sink.getvalue().to_pybytes())
    return {"numbers": numbers, "texts": texts}


# The model


EVENTS = 1e9
NODES = 100
TICKS = (TICK, 0.1, 0.5)
BUSY = 0.5
"""Of a core: what a thread that must keep up is given."""
LINK = 10e9 / 8 * 0.5
"""Bytes a second: half of a link of 10 Gbit/s."""
BROKER_CORES = 4
"""That a server of NATS uses, half busy."""


@dataclass(frozen=True)
class Units:
    """What things cost, in seconds of the processor, or bytes.

    Args:
        shard_id: an id in a shard.
        shard_message: a message in a shard, beside its ids.
        shard_rest: a shard at rest, for a second, beside messages.
        gateway_id: an id in a gateway.
        gateway_message: a message in a gateway, beside its ids.
        broker_id: an id in the broker.
        broker_message: a message in the broker, beside its ids.
        id_bytes: of an id on the way into the broker, and out of it.
        message_bytes: of a message beside its ids.
        sealed: bytes of the state of a shard, which the vault writes each second.
    """

    shard_id: float
    shard_message: float
    shard_rest: float
    gateway_id: float
    gateway_message: float
    broker_id: float
    broker_message: float
    id_bytes: float
    message_bytes: float
    sealed: int


def units(found: dict[int, Costs]) -> Units:
    """From what was measured: of ids with two shards, as one need not look whose rows are."""
    shards = max(found)
    most, two = found[shards], found[2]
    period = statistics.median(each for costs in found.values() for each in costs.period)
    message = [each for costs in found.values() for each in costs.message]
    shard_message = median(message, "shards")
    return Units(
        shard_id=two.an_id("numbers", "shards") * 1e-9,
        shard_message=shard_message,
        shard_rest=max(0.0, median(most.rest, "shards") / shards - 2 * shard_message / period),
        gateway_id=two.an_id("numbers", "gateway") * 1e-9,
        gateway_message=median(most.message, "publisher"),
        broker_id=two.an_id("numbers", "NATS") * 1e-9,
        broker_message=median(message, "NATS"),
        id_bytes=median(two.hops["numbers"], "in_bytes"),
        message_bytes=statistics.median(each for costs in found.values() for each in costs.empty),
        sealed=most.sealed,
    )


@dataclass(frozen=True)
class Cluster:
    """So many of each part, for `EVENTS` a second of one stream.

    Args:
        tick: seconds from one round to the next.
        shards: a thread reads the queue of each.
        gateways: each sends to all shards, each tick.
        unit: what things cost.
    """

    tick: float
    shards: int
    gateways: int
    unit: Units

    @property
    def messages(self) -> float:
        """A second."""
        return self.shards * self.gateways / self.tick

    @property
    def shard_busy(self) -> float:
        """Share of a core that a shard takes."""
        of_messages = self.gateways / self.tick * self.unit.shard_message
        return EVENTS / self.shards * self.unit.shard_id + of_messages + self.unit.shard_rest

    @property
    def gateway_busy(self) -> float:
        """Share of a core that a gateway takes."""
        of_messages = self.shards / self.tick * self.unit.gateway_message
        return EVENTS / self.gateways * self.unit.gateway_id + of_messages

    @property
    def broker_cores(self) -> float:
        """That all brokers take."""
        return EVENTS * self.unit.broker_id + self.messages * self.unit.broker_message

    @property
    def traffic(self) -> float:
        """Bytes a second into all brokers; as many go out."""
        return EVENTS * self.unit.id_bytes + self.messages * self.unit.message_bytes

    @property
    def brokers(self) -> int:
        """That have the cores and the links."""
        return math.ceil(max(self.broker_cores / (BUSY * BROKER_CORES), self.traffic / LINK))

    @property
    def cores(self) -> float:
        """That all parts take."""
        of_gateways = self.gateways * self.gateway_busy
        return self.shards * self.shard_busy + of_gateways + self.broker_cores

    def row(self) -> list[str]:
        """For the table."""
        return [
            f"{self.tick * 1e3:,.0f} ms",
            f"{self.shards:,}",
            f"{self.shard_busy:.0%}",
            f"{self.gateways:,}",
            f"{self.gateway_busy:.0%}",
            f"{self.messages:,.0f}",
            f"{self.brokers:,}",
            f"{self.broker_cores:,.0f}",
            f"{self.traffic / 1e9:.1f} GB/s",
            f"{self.cores:,.0f}",
            f"{self.shards * self.unit.sealed / 1e6:,.0f} MB/s",
        ]


def fewest(tick: float, unit: Units) -> Cluster | None:
    """The least shards and gateways that are at most `BUSY`, if there are any."""
    shards = gateways = 1
    while max(shards, gateways) < 100_000:
        one = Cluster(tick, shards, gateways, unit)
        if one.shard_busy <= BUSY and one.gateway_busy <= BUSY:
            return one
        free_shard = BUSY - unit.shard_rest - gateways / tick * unit.shard_message
        free_gateway = BUSY - shards / tick * unit.gateway_message
        if free_shard <= 0 or free_gateway <= 0:
            return None
        shards = max(shards, math.ceil(EVENTS * unit.shard_id / free_shard))
        gateways = max(gateways, math.ceil(EVENTS * unit.gateway_id / free_gateway))
    return None


def model(unit: Units) -> Table:
    """With the fewest parts, and with a shard and a gateway on each node, for several ticks."""
    headings = ["tick", "shards", "busy", "gateways", "busy", "messages a second", "brokers"]
    headings += ["their cores", "into the brokers", "cores in all", "to the vault"]
    rows = []
    for tick in TICKS:
        least = fewest(tick, unit)
        nothing = [f"{tick * 1e3:,.0f} ms", *["cannot be"] * (len(headings) - 1)]
        rows += [nothing if least is None else least.row(), Cluster(tick, NODES, NODES, unit).row()]
    return headings, rows


def assumptions(unit: Units, contribution: tuple[int, float]) -> Table:
    """What the model is made of."""
    size, seconds = contribution
    told = [
        ("an id in a shard", f"{unit.shard_id * 1e9:.1f} ns", "as with two shards here"),
        ("a message in a shard, beside its ids", f"{unit.shard_message * 1e6:,.0f} us",
         "as of one in which there is nothing"),
        ("a shard at rest, beside messages", f"{unit.shard_rest:.1%} of a core",
         "a sealed state each second, Ray, wiping"),
        ("an id in a gateway", f"{unit.gateway_id * 1e9:.1f} ns",
         "in bodies of 100,000; several cost no more each"),
        ("a message in a gateway, beside its ids", f"{unit.gateway_message * 1e6:,.0f} us",
         "as of a `Publisher` that sends nothing"),
        ("an id in the broker", f"{unit.broker_id * 1e9:.1f} ns",
         "in and out; one copy, in memory"),
        ("a message in the broker, beside its ids", f"{unit.broker_message * 1e6:,.0f} us",
         "in and out"),
        ("bytes of an id, into the broker", f"{unit.id_bytes:.2f}",
         "and as many out of it; no TLS"),
        ("bytes of a message, beside its ids", f"{unit.message_bytes:,.0f}", "the least length"),
        ("sealed state of a shard", f"{unit.sealed:,} bytes",
         "with 4 shards; with more, the table in it gets smaller and the names of batches do not"),
        (f"contributions of {NODES} shards", f"{size:,} bytes each",
         f"measured: the coordinator adds them up and noises once in {seconds:.2f} s"),
        ("how busy a thread may be", f"{BUSY:.0%}", "so that it catches up after a pause"),
        ("a broker", f"{BROKER_CORES} cores, a link of 10 Gbit/s",
         "both half used; all brokers alike"),
    ]  # fmt: skip
    return ["what", "number", "assumed"], [list(row) for row in told]


def contribution(shards: int) -> tuple[int, float]:
    """Bytes of what a shard contributes, and seconds to add up those of all."""
    stat = ({"name": "distinct", "expected": "10_000:1e8"},)
    config = StreamConfig(stat=stat, epsilon=1, window="1d", ids=IdKind.integers)
    router = Router(shards, KEY, numbered=False)
    packed = [
        b"".join(
            part.packed()
            for part in config.make_counting(router.slice(at)).internals.contributions.parts("sums")
        )
        for at in range(shards)
    ]
    began = time.process_time()
    Merger(packed).release(0.95, SystemCoins())
    return len(packed[0]), time.process_time() - began


# Inside a shard


STEPS = {
    "pull": "read from the broker",
    "open": "decrypt",
    "read": "take the message apart",
    "route": "check that each row belongs to this shard",
    "check": "check the rows as the service does",
    "count": "count",
}
MESSAGES = 200


def inside() -> Table:
    """Nanoseconds an id of each step of a shard, in this process, of messages of 100,000 ids."""
    stat = ({"name": "distinct", "expected": "10_000:1e8"},)
    config = StreamConfig(stat=stat, epsilon=1, window="1d", ids=IdKind.integers)
    router, opener, queue = Router(2, KEY, numbered=False), Opener(), Queue("inside", "ids", 2, 0)
    counting = config.make_counting(router.slice(0))
    reception, spent = Reception(config, counting), Counter[str]()
    draw, room = np.random.default_rng(1), memoryview(bytearray(1 << 20))

    def timed(step: str, work: Callable[[], Any]) -> Any:
        began = time.process_time()
        done = work()
        spent[step] += time.process_time() - began  # type: ignore[assignment]
        return done

    with NatsServer(found_nats()) as server, closing(Broker(server.url)) as broker:
        at = broker.open(queue)
        for _ in range(MESSAGES):
            ids = draw.integers(0, 1 << 62, 3 * BODY)
            ids = ids[router.shards_of(ids) == 0][:BODY]
            sent = Round(router, 0, broker.most_message)
            sent.add([pa.record_batch([pa.array(ids)], names=["user"])])
            ((plain, _),) = sent.pack()
            broker.publish([(queue, seal(plain, opener.public, queue.subject))])
        while spent["ids"] < MESSAGES * BODY:
            pulled = timed("pull", lambda: broker.pull(queue, at, 64, 1.0))  # noqa: B023
            for at, sealed in pulled:  # noqa: B007
                plain = timed("open", lambda one=sealed: opener.open(one, queue.subject, room))
                parts = timed("read", lambda one=plain: list(read_message(one, 1)))
                batches = [batch for part in parts for batch in part.batches]
                for batch in batches:
                    timed("route", lambda one=batch: router.check(one, 0, 0))
                checked = timed("check", lambda one=batches: reception.check(counting, one))
                timed("count", lambda one=checked: counting.internals.memory.apply(*one))
                spent["ids"] += sum(batch.num_rows for batch in batches)
    return ["step", "an id"], [
        [says, f"{spent[step] / spent['ids'] * 1e9:.1f} ns"] for step, says in STEPS.items()
    ]


# The page


def called(shards: int) -> str:
    """What counts."""
    return f"{shards} shard{'s' * (shards > 1)}" if shards else "the service"


def costs_table(found: dict[int, Costs], missed: list[str]) -> Table:
    """Nanoseconds an id of each part."""
    of, empty = "of the service's", ["", ""]
    headings = ["ids", "counted by", "in shards", of, "with rest", of]
    headings += ["in the gateway", "in NATS", "in Ray", "in all", of]
    headings += ["into NATS", "out of NATS"]
    rows = []
    for stream in BODIES:
        service = found[0].an_id(stream, "shards")
        rested = median(found[0].whole[stream], "shards")
        for shards, costs in found.items():
            each = [costs.an_id(stream, part) for part in PARTS]
            ratio, whole = each[0] / service, median(costs.whole[stream], "shards")
            told = marked(f"{ratio:.2f}", ratio <= REACH, missed) if shards else "1"
            row = [stream, called(shards), f"{each[0]:.1f} ns", told]
            row += [f"{whole:.1f} ns", f"{whole / rested:.2f}" if shards else "1"]
            row += [f"{one:.1f} ns" if shards else "" for one in each[1:]]
            everything = f"{sum(each):.1f} ns", f"{sum(each) / service:.2f}"
            row += everything if shards else empty
            hops = costs.hops[stream]
            moved = [f"{median(hops, name):.2f} bytes" for name in ("in_bytes", "out_bytes")]
            rows.append([*row, *(moved if shards else empty)])
    return headings, rows


def rest_table(found: dict[int, Costs]) -> Table:
    """What is spent where nothing comes."""
    headings = ["counted by", "shards, together", "gateway", "NATS", "Ray", "sealed state of one"]
    headings += ["message: shard", "NATS", "publisher", "bytes"]
    rows = []
    for shards, costs in found.items():
        row = [called(shards)]
        known = PARTS if shards else PARTS[:1]
        row += [f"{median(costs.rest, part):.3f}" for part in known]
        row += [""] * (len(PARTS) - len(known))
        row.append(f"{costs.sealed:,} bytes")
        parts = ("shards", "NATS", "publisher")
        row += [f"{median(costs.message, one) * 1e6:,.0f} us" if shards else "" for one in parts]
        rows.append([*row, f"{statistics.median(costs.empty):,.0f}" if shards else ""])
    return headings, rows


def main() -> int:
    """Measure, write the tables, and say where a shard spends too much."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=TURNS)
    turns = parser.parse_args().turns
    found = {shards: Costs() for shards in (0, *SHARDS)}
    bodies = made_bodies()
    for number in range(turns):
        for shards, costs in found.items():
            turn(shards, bodies, costs)
            ids = {stream: f"{costs.an_id(stream, 'shards'):.1f}" for stream in BODIES}
            print(f"turn {number + 1}, {called(shards)}: ns an id {ids}", flush=True)
    missed: list[str] = []
    unit = units({shards: costs for shards, costs in found.items() if shards})
    tables = {
        "costs": costs_table(found, missed),
        "rest": rest_table(found),
        "inside": inside(),
        "assumptions": assumptions(unit, contribution(NODES)),
        "model": model(unit),
    }
    text = PAGE.read_text()
    for name, one in tables.items():
        text = fill(text, name, table(*one))
    PAGE.write_text(text)
    print("missed:", missed or "none")
    return min(len(missed), 1)


if __name__ == "__main__":
    sys.exit(main())
