"""What a program leaves elsewhere is looked for in tests marked `traces` and in slow ones."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import gc
import os
import sys

import pytest
from hypothesis import settings

from panprivacy.audit import subject
from panprivacy.audit.exact import loss
from panprivacy.devices.federated import elgamal, group
from panprivacy.ground.kernels import Kernel, cache_folder
from panprivacy.statistics import records
from panprivacy.testing import allow_noise

gc.disable()  # until all tests are collected, of which nothing is garbage

CACHE = type(functools.cache(lambda: None))

settings.register_profile("crowded", deadline=None)  # an example takes what the machine leaves it
settings.load_profile("crowded")

records._planned = functools.cache(records._planned.__wrapped__)  # tests make more than it keeps


@functools.lru_cache(maxsize=8)
def multiples_of(encoded):
    """The table of a public key: 30 ms, for each device of a task in a process of its own."""
    return group.Multiples(elgamal._parsed(encoded, elgamal.POINT_BYTES)[0])


elgamal.EncryptionKey._multiples = property(lambda key: multiples_of(bytes(key)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """Three workers on two processors: a quarter of all time is waited for programs and clocks."""
    return (os.cpu_count() or 1) * 3 // 2


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Look for examples in what is documented, and not in tests: it takes 4 s a worker."""
    collected = yield
    return [one for one in collected if type(one) is pytest.Module]


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Allow cases and parameters of tests to be too small to be useful."""
    with allow_noise():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Allow tests tables too small to be useful; pages have what users have."""
    tests = item.path.is_relative_to(item.config.rootpath / "tests")
    with allow_noise() if tests else contextlib.nullcontext():
        return (yield)


def pytest_collection_finish():
    """Keep the collector from looking through all tests again and again: it takes 5 s a worker."""
    gc.freeze()
    gc.enable()


def alone(make):
    """Have one worker compile at a time, and the others take what it kept: it is 16 s for all."""

    def made(kernel):
        from numba import config  # noqa: PLC0415 - slow to import

        folder = cache_folder(config.CACHE_DIR)
        if folder is None or compiling:
            return make(kernel)
        compiling.append(os.open(folder, os.O_RDONLY))
        try:
            fcntl.flock(compiling[0], fcntl.LOCK_EX)
            return make(kernel)
        finally:
            os.close(compiling.pop())

    return made


compiling = []
"""The folder that is locked; kernels compile others that they call."""

Kernel._make = alone(Kernel._make)


LOOKED_FOR = loss.check_traces


def pytest_runtest_setup(item):
    """The exact loss alone: four children a walk take a second, and there are hundreds of walks."""
    whole = any(item.get_closest_marker(name) for name in ("traces", "slow"))
    if whole:
        forget_what_other_tests_planned()
    loss.check_traces = subject.check_traces = LOOKED_FOR if whole else lambda *_: None


def pytest_runtest_teardown():
    """The examples in documents, which this file knows nothing of, have it whole."""
    loss.check_traces = subject.check_traces = LOOKED_FOR


def forget_what_other_tests_planned():
    """Children would go through all of it."""
    for name, module in list(sys.modules.items()):
        if name.startswith("panprivacy."):
            for value in list(vars(module).values()):
                if isinstance(value, CACHE):
                    value.cache_clear()


def pytest_terminal_summary(terminalreporter):
    """Say how many test vectors were replayed, by whichever process."""
    passed = terminalreporter.getreports("passed")
    if replayed := sum("replayed" in dict(report.user_properties) for report in passed):
        terminalreporter.write_line(f"replayed {replayed} vectors")
