"""A spare word at the end of the blocks of Python and NumPy: freed ones are overwritten completely.

glibc overwrites what is freed but for the last word of a block, which belongs to the next block as
well. An object that fills its block to the end would leave up to eight bytes of an id there.
"""

from __future__ import annotations

import ctypes
import sys
from importlib import import_module
from typing import Any

import numpy as np
from llvmlite import binding

_WORD = 8
_DOMAINS = range(3)
"""Raw memory, memory, objects."""
_DEFAULT_HANDLER = 306
"""Place of `PyDataMem_DefaultHandler` in the C interface of NumPy."""
_HANDLER_HEAD = 128
"""Bytes of the name and the version, before the functions of a `PyDataMem_Handler`."""

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

declare void @free(i64)

define void @free_at_once(i64 %context, i64 %block, i64 %size) {{
  tail call void @free(i64 %block)
  ret void
}}
"""
"""Pointers are passed as numbers, which 64-bit machines do not tell apart. Python rules overflows
out before it calls these.
"""

_kept: list[Any] = []
"""Compiled functions, which Python calls for as long as it runs."""


class _Allocator(ctypes.Structure):
    """`PyMemAllocatorEx`, and `PyDataMemAllocator`, whose `free` is told the size as well."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("ctx", "malloc", "calloc", "realloc", "free")]


def leave_spare_words() -> None:
    """Make Python and NumPy ask their allocators for a word more from now on, once.

    These are hooks: they call what was called before, so that blocks of before are freed as ever.
    But NumPy keeps no small blocks any more: it would hand them out as they are.
    """
    if _kept:
        return
    for domain in _DOMAINS:
        allocator = _Allocator()
        ctypes.pythonapi.PyMem_GetAllocator(domain, ctypes.byref(allocator))
        ctypes.pythonapi.PyMem_SetAllocator(domain, ctypes.byref(_roomier(allocator)))
    arrays = _array_allocator()
    roomier = _roomier(arrays, free=_kept[-1].get_function_address("free_at_once"))
    ctypes.pointer(arrays)[0] = roomier


def keeps_small_arrays() -> bool:
    """Return whether NumPy keeps small blocks that were freed, as they were."""
    return not _kept


def has_spare_words() -> bool:
    """Return whether glibc has at least one word more for an object or array than it needs."""
    usable = ctypes.CDLL(None).malloc_usable_size
    usable.argtypes, usable.restype = [ctypes.c_void_p], ctypes.c_size_t
    lengths = range(1_000, 1_000 + 2 * _WORD)
    objects = [bytes(length) for length in lengths]
    arrays = [np.empty(length, np.uint8) for length in lengths]
    return all(usable(id(one)) >= sys.getsizeof(one) + _WORD for one in objects) and all(
        usable(one.ctypes.data) >= one.nbytes + _WORD for one in arrays
    )


def _array_allocator() -> _Allocator:
    """Return the allocator of NumPy's arrays in all threads, at its place."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.argtypes, pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    interface = vars(import_module("numpy._core._multiarray_umath"))["_ARRAY_API"]
    places = (ctypes.c_size_t * (_DEFAULT_HANDLER + 1)).from_address(pointer(interface, None))
    handler = ctypes.py_object.from_address(places[_DEFAULT_HANDLER]).value
    return _Allocator.from_address(pointer(handler, b"mem_handler") + _HANDLER_HEAD)


def _roomier(allocator: _Allocator, *, free: int | None = None) -> _Allocator:
    """Return an allocator that requests one more word from this one.

    Args:
        allocator: what was called before.
        free: address of another function that frees; None for that of `allocator`.
    """
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
    return _Allocator(allocator.ctx, *addresses, free or allocator.free)
