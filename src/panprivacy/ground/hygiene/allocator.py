"""A spare word at the end of Python's blocks, so that freed blocks are overwritten completely.

glibc overwrites what is freed but for the last word of a block, which belongs to the next block as
well. An object that fills its block to the end would leave up to eight bytes of an id there.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from llvmlite import binding

_WORD = 8
_DOMAINS = range(3)
"""Raw memory, memory, objects."""

_WITH_A_WORD_MORE = f"""
declare i64 @malloc(i64, i64)
declare i64 @calloc(i64, i64, i64)
declare i64 @realloc(i64, i64, i64)

define i64 @roomy_malloc(i64 %context, i64 %size) {{
  %more = add i64 %size, {_WORD}
  %block = tail call i64 @malloc(i64 %context, i64 %more)
  ret i64 %block
}}

define i64 @roomy_calloc(i64 %context, i64 %count, i64 %size) {{
  %all = mul i64 %count, %size
  %more = add i64 %all, {_WORD}
  %block = tail call i64 @calloc(i64 %context, i64 1, i64 %more)
  ret i64 %block
}}

define i64 @roomy_realloc(i64 %context, i64 %block, i64 %size) {{
  %more = add i64 %size, {_WORD}
  %moved = tail call i64 @realloc(i64 %context, i64 %block, i64 %more)
  ret i64 %moved
}}
"""
"""Pointers are passed as numbers, which 64-bit machines do not tell apart. Python rules overflows
out before it calls these.
"""

_kept: list[Any] = []
"""Compiled functions, which Python calls for as long as it runs."""


class _Allocator(ctypes.Structure):
    """`PyMemAllocatorEx`."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("ctx", "malloc", "calloc", "realloc", "free")]


def leave_spare_words() -> None:
    """Make Python ask its allocators for a word more from now on, once.

    This is a hook: it calls what was called before, so that blocks of before are freed as ever.
    """
    if _kept:
        return
    for domain in _DOMAINS:
        allocator = _Allocator()
        ctypes.pythonapi.PyMem_GetAllocator(domain, ctypes.byref(allocator))
        ctypes.pythonapi.PyMem_SetAllocator(domain, ctypes.byref(_roomier(allocator)))


def has_spare_words() -> bool:
    """Return whether glibc has at least one word more for an object than the object needs."""
    usable = ctypes.CDLL(None).malloc_usable_size
    usable.argtypes, usable.restype = [ctypes.c_void_p], ctypes.c_size_t
    objects = [bytes(length) for length in range(1_000, 1_000 + 2 * _WORD)]
    return all(usable(id(one)) >= sys.getsizeof(one) + _WORD for one in objects)


def _roomier(allocator: _Allocator) -> _Allocator:
    """Return an allocator that requests one more word from this one."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    module = binding.parse_assembly(_WITH_A_WORD_MORE)
    machine = binding.Target.from_default_triple().create_target_machine()
    engine = binding.create_mcjit_compiler(module, machine)
    names = ("malloc", "calloc", "realloc")
    for name in names:
        engine.add_global_mapping(module.get_function(name), getattr(allocator, name))
    engine.finalize_object()
    _kept.append(engine)
    addresses = [engine.get_function_address(f"roomy_{name}") for name in names]
    return _Allocator(allocator.ctx, *addresses, allocator.free)
