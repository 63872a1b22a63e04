"""What kernels ask the processor for."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from llvmlite import binding
from numba import njit

from panprivacy.ground import intrinsics as _intrinsics
from panprivacy.ground.kernels import instruction
from panprivacy.tables.hashing import ABREAST
from tests.unit.test_hashing import MASK, fold

WORDS = st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 63).map(lambda bit: 1 << bit))


def reference_deposit(bits, mask):
    """Bits of the first number, from the lowest one, at the ones of the second."""
    places = [place for place in range(64) if mask >> place & 1]
    return sum((bits >> number & 1) << place for number, place in enumerate(places))


@pytest.fixture(params=[True, False], ids=["with", "without"], scope="module")
def compiled(request):
    """Kernels of what has two forms, for a processor that has the instruction and for another."""
    with pytest.MonkeyPatch.context() as patched:
        features = lambda: dict.fromkeys(("avx2", "bmi2"), request.param)  # noqa: E731
        known = SimpleNamespace(
            get_host_cpu_features=features,
            initialize_native_asmparser=binding.initialize_native_asmparser,
        )
        patched.setattr(_intrinsics, "binding", known)
        deposit, fold_abreast = (instruction(name).made() for name in ("deposit", "fold_abreast"))

        @njit("void(uint64[::1], uint64, uint64, uint64, uint64, uint64[::1])")
        def folded(words, a, b, c, d, written):
            fold_abreast(words.ctypes.data, a, b, c, d, written.ctypes.data)

        yield SimpleNamespace(
            deposit=njit("uint64(uint64, uint64)")(lambda bits, mask: deposit(bits, mask)),  # noqa: PLW0108
            fold_abreast=folded,
        )


@given(bits=WORDS, mask=WORDS)
@example(bits=MASK, mask=0)
@example(bits=0x123456789ABCDEF0, mask=MASK)
def test_bits_are_deposited_in_order_with_and_without_the_instruction(compiled, bits, mask):
    assert compiled.deposit(bits, mask) == reference_deposit(bits, mask)


SEVERAL = st.lists(WORDS, min_size=ABREAST, max_size=ABREAST)


@pytest.mark.long
@given(words=SEVERAL, numbers=st.tuples(WORDS, WORDS, WORDS, WORDS))
@example(words=ABREAST * [MASK], numbers=(0, MASK, 0, 0))
@example(words=ABREAST * [MASK], numbers=(MASK, 2**32 - 1, MASK, 0))
def test_products_are_folded_alike_with_and_without_vector_registers(compiled, words, numbers):
    a, b, c, d = numbers
    written = np.zeros(ABREAST + 1, np.uint64)
    compiled.fold_abreast(np.array(words, np.uint64), *numbers, written)
    expected = [fold(fold(word ^ a, b) ^ c, word ^ d) for word in words]
    assert written.tolist() == [*expected, 0]
