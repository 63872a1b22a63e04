"""A real service in a process of its own: started, asked, stopped, killed and restored."""

from __future__ import annotations

import atexit
import functools
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx
import pyrage

from panprivacy.service.config.tokens import hash_of
from tests.commands import run_command

TOKENS = {role: f"pp_{role}" for role in ("ingest", "read", "release", "announce")}
VISITS = """
[streams.visits]
epsilon = 1
window = "1d"
ids = "integers"
[[streams.visits.stat]]
name = "distinct"
expected = "1000:1e6"
"""
"""A stream for tests to which it does not matter."""

PLAIN = [sys.executable, "-c", "from panprivacy.cli import main; main()"]
"""The command line without the launcher, which starts a clean process first: quicker."""
HARDENED = [str(Path(sys.executable).with_name("panprivacy"))]
"""The command line as it is installed."""

_PATIENCE = 60.0
_PAUSE = 0.005
_LISTENING = re.compile(r"^panprivacy: listening where=(\S+)$", re.MULTILINE)


def wait_until_read(*ports):
    """Wait until no datagram waits at these ports, and until what was read is counted."""
    at = "|".join(f"{port:04X}" for port in ports)
    mark = re.compile(rf"^ *\d+: [0-9A-F]+:({at}) \S+ \S+ [0-9A-F]+:(?!00000000)", re.MULTILINE)
    tables = [Path("/proc/net", name) for name in ("udp", "udp6")]
    wait_until(lambda: not any(one.exists() and mark.search(one.read_text()) for one in tables))
    time.sleep(0.5)


class Service:
    """A service with a folder of its own; as a context manager, it is killed in the end.

    Args:
        directory: a folder that is there; its configuration, key, checkpoint and log go there.
        streams: tables of the configuration.
        server: lines of its `[server]` table.
        checkpoint: lines of its `[checkpoint]` table; None for no such table.
        command: what runs the command line, as `PLAIN` or `HARDENED`; None for `preloaded`.
        preloaded: a process that starts it in no time; None for one that all tests share.
    """

    def __init__(
        self,
        directory,
        streams=VISITS,
        *,
        server='listen = "127.0.0.1:0"',
        checkpoint='every = "1s"',
        command=None,
        preloaded=None,
    ):
        self.directory = Path(directory)
        self.config, self.log = self.directory / "service.toml", self.directory / "log"
        self.identity, self.sealed = (
            self.directory / "key.txt",
            self.directory / "panprivacy.sealed",
        )
        self._command, self._preloaded, self._process = command, preloaded, None
        key = pyrage.x25519.Identity.generate()
        self.recipient = str(key.to_public())
        self.identity.write_text(f"{key}\n")
        self.client = httpx.Client(
            verify=False,  # certificates take long to load
            trust_env=False,
            timeout=_PATIENCE,
            limits=httpx.Limits(max_keepalive_connections=0),  # it may be killed in between
        )
        self.configure(streams, server=server, checkpoint=checkpoint)

    def configure(self, streams, *, server='listen = "127.0.0.1:0"', checkpoint='every = "1s"'):
        """Write the configuration, in place of the one that is there."""
        tables = [f"[server]\n{server}"]
        if checkpoint is not None:
            tables.append(f'[checkpoint]\nrecipient = "{self.recipient}"\n{checkpoint}')
        tables += [
            f'[[tokens]]\nname = "{role}"\nmay = ["{role}"]\nsha256 = "{hash_of(token)}"'
            for role, token in TOKENS.items()
        ]
        self.config.write_text("\n".join([*tables, streams]))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self.client.close()

    def start(self, *options):
        """Start it, and wait until it answers; it may wait for `restore` then."""
        self.log.write_text("")
        words = ["serve", str(self.config), *options]
        if self._command is None:
            self._process = (self._preloaded or shared()).start(self.log, words)
        else:
            with self.log.open("a") as log:
                self._process = subprocess.Popen(
                    [*self._command, *words],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
        wait_until(self._answers)
        return self

    def begin(self, *options):
        """Start it, and have it restored if there is a checkpoint."""
        self.start(*options)
        if self.status() == "waiting for restore":
            result = self.restore()
            if result.code:
                raise RuntimeError(result.stderr)
        return self

    def kill(self):
        """End it at once, as a crash does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def stop(self):
        """End it in good order; its exit code."""
        process, self._process = self._process, None
        process.send_signal(signal.SIGTERM)
        return process.wait(_PATIENCE)

    def restore(self, identity=None):
        """Run `panprivacy restore` with the key of the service, or with another one."""
        return run_command("restore", self.config, "--identity", identity or self.identity)

    @property
    def pid(self):
        """Of the process that runs."""
        return self._process.pid

    @property
    def exit_code(self):
        """Of a process that has ended by itself; None while it runs."""
        return self._process.poll()

    @property
    def said(self):
        """What it has logged since its start."""
        return self.log.read_text()

    def url(self, path=""):
        """Where a path of it is, or all of it."""
        return _LISTENING.search(self.said)[1] + path

    def headers(self, role, **more):
        """Those with the token of a role; `more` has others, with _ for -."""
        others = {name.replace("_", "-"): value for name, value in more.items()}
        return {"Authorization": f"Bearer {TOKENS[role]}", **others}

    def send(self, ids, *, stream="visits", durable=False, key=None):
        """Post a batch of user ids."""
        return self.client.post(
            self.url(f"/v1/streams/{stream}/updates"),
            params={"durable": int(durable)},
            content=rows_of(ids),
            headers=self.headers("ingest", **_batch_headers(key)),
        )

    def release(self, stream="visits"):
        """Ask for a release."""
        url = self.url(f"/v1/streams/{stream}/release")
        return self.client.post(url, headers=self.headers("release"))

    def releases(self, stream="visits"):
        """What was released, as the service tells it."""
        url, params = self.url("/v1/releases"), {"stream": stream}
        answer = self.client.get(url, params=params, headers=self.headers("read"))
        return answer.raise_for_status().json()

    def health(self):
        """What `/healthz` says to who may read."""
        return self.client.get(self.url("/healthz"), headers=self.headers("read")).json()

    def status(self):
        """The word of `/healthz`."""
        return self.health()["status"]

    def _answers(self):
        if self._process.poll() is not None:
            raise RuntimeError(f"the service has ended: {self.said}")
        if _LISTENING.search(self.said) is None:
            return False
        try:
            self.health()
        except httpx.TransportError:
            return False
        return True


class Preloaded:
    """A process that has imported and compiled the program, and becomes services in no time.

    Args:
        every: seconds between checkpoints, where a configuration has whole seconds only.
    """

    def __init__(self, every=None):
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PRELOADED, str(every or 0)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.communicate(timeout=_PATIENCE)

    def start(self, log, words):
        """A process that runs the command line, and writes all that it says to a file."""
        return _Forked(self, self.ask("start", os.devnull, log, log, *words))

    def piped(self, words):
        """A process that runs the command line, with three pipes."""
        ends = {name: os.pipe() for name in ("stdin", "stdout", "stderr")}
        theirs = [ends["stdin"][0], ends["stdout"][1], ends["stderr"][1]]
        paths = [f"/proc/{os.getpid()}/fd/{end}" for end in theirs]
        process = _Piped(self, self.ask("start", *paths, *words), ends)
        for end in theirs:
            os.close(end)
        return process

    def ask(self, *words):
        """Have it do something; the number that it answers."""
        self._process.stdin.write("\t".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@functools.cache
def shared():
    """One for all tests of this process."""
    process = Preloaded()
    atexit.register(process.__exit__)
    return process


class _Forked:
    """What is used of `subprocess.Popen`, for a child of another process."""

    def __init__(self, parent, pid):
        self._parent, self.pid, self._code = parent, pid, None

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def poll(self):
        if self._code is None:
            code = self._parent.ask("poll", str(self.pid))
            self._code = None if code == _RUNS else code
        return self._code

    def wait(self, timeout=_PATIENCE):
        wait_until(lambda: self.poll() is not None, timeout)
        return self._code


class _Piped(_Forked):
    """The same with pipes, of bytes."""

    def __init__(self, parent, pid, ends):
        super().__init__(parent, pid)
        self.stdin = os.fdopen(ends["stdin"][1], "wb")
        self.stdout = os.fdopen(ends["stdout"][0], "rb")
        self.stderr = os.fdopen(ends["stderr"][0], "rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        for pipe in (self.stdin, self.stdout, self.stderr):
            with suppress(BrokenPipeError):
                pipe.close()

    @property
    def returncode(self):
        """None while it runs."""
        return self._code

    def kill(self):
        """End it at once, if it runs."""
        self.send_signal(signal.SIGKILL)
        self.wait()

    def communicate(self, given=b"", timeout=_PATIENCE):
        """Write the last to it; what it prints and says until it ends."""
        with self.stdout, self.stderr, ThreadPoolExecutor() as readers:
            read = [readers.submit(pipe.read) for pipe in (self.stdout, self.stderr)]
            with suppress(BrokenPipeError), self.stdin:
                self.stdin.write(given)
            self.wait(timeout)
            return tuple(one.result() for one in read)


_RUNS = 1_000
_HOW = os.O_RDONLY, os.O_WRONLY, os.O_WRONLY
_PRELOADED = f"""
import gc, os, signal, sys
from contextlib import redirect_stderr, suppress
from io import StringIO
import pyarrow, sqlalchemy.dialects.sqlite
from panprivacy.ground.kernels import compile_kernels
from panprivacy.cli import main
from panprivacy.service import server
from panprivacy.service.config import config, loading
from panprivacy.service.stream import Stream
every = float(sys.argv[1])
if every:
    config.CheckpointConfig.every_seconds = property(lambda _: every)
for command in ("serve", "run", "collector"):
    with suppress(SystemExit), redirect_stderr(StringIO()):  # typer imports what it needs
        sys.argv = ["panprivacy", command, "/nowhere/service.toml"]
        main()
compile_kernels()
pyarrow.array([])  # Arrow imports pandas then, which takes longer than all the rest
known = {{""}}
gc.freeze()  # or the collector of each child would touch, and so copy, all that is there
for line in sys.stdin:
    what, *rest = line.rstrip("\\n").split("\\t")
    if what == "poll":
        ended, status = os.waitpid(int(rest[0]), os.WNOHANG)
        print(os.waitstatus_to_exitcode(status) if ended else {_RUNS}, flush=True)
        continue
    # What it compiles and plans, its children know. Whatever fails is for them to tell, and for a
    # release, if a step ends meanwhile, there is no store here.
    with suppress(Exception):
        text = open(rest[4]).read() if rest[3] == "serve" else ""
        for name, planned in loading.load(rest[4]).streams.items() if text not in known else ():
            known.add(text)
            stream = Stream(name, planned, None)
            stream.take(stream.columns.body_reader.read("ndjson", b'{{"user": 1}}'))
    ends = [os.open(path, how | os.O_APPEND) for path, how in zip(rest, {_HOW}, strict=False)]
    pid = os.fork()
    if not pid:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored here
        for number, end in enumerate(ends):
            os.dup2(end, number)
            os.close(end)
        sys.argv = ["panprivacy", *rest[3:]]
        main()
    for end in ends:
        os.close(end)
    print(pid, flush=True)
"""


def wait_until(holds, patience=_PATIENCE):
    """Wait until something holds, or fail."""
    end = time.monotonic() + patience
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError("what was waited for does not come")
        time.sleep(_PAUSE)


def rows_of(ids):
    """A body of rows with a user id each, as newline-delimited JSON."""
    return "".join(f'{{"user": {one}}}\n' for one in ids).encode()


def _batch_headers(key):
    named = {} if key is None else {"Idempotency_Key": key}
    return {"Content_Type": "application/x-ndjson", **named}
