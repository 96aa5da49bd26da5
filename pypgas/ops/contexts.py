# SPDX-License-Identifier: Apache-2.0
"""Contexts: streams of operations that are ordered and completed independently of each other."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from .. import _native

__all__ = ["Context"]


def _on_context(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Context, *args: Any, **kwargs: Any) -> Any:
        return function(*args, ctx=self, **kwargs)

    method.__name__ = method.__qualname__ = function.__name__
    method.__doc__ = f"`pypgas.{function.__name__}` on this context."
    return method


class Context(_native.ContextBase):
    """Operations with their own ordering and completion: ``ctx.put(...)``, ``ctx.quiet()``.

    PE numbers count in the context's team, the world by default. A barrier completes the default context only.
    Making and destroying a context is local. OpenSHMEM 1.6, SHMEM_CTX_CREATE.
    """

    __slots__ = ("__weakref__",)

    put = _on_context(_native.put)
    put_nbi = _on_context(_native.put_nbi)
    get = _on_context(_native.get)
    get_nbi = _on_context(_native.get_nbi)
    p = _on_context(_native.p)
    g = _on_context(_native.g)
    iput = _on_context(_native.iput)
    iget = _on_context(_native.iget)
    put_signal = _on_context(_native.put_signal)
    put_signal_nbi = _on_context(_native.put_signal_nbi)
    signal_set = _on_context(_native.signal_set)
    signal_add = _on_context(_native.signal_add)
    atomic_fetch = _on_context(_native.atomic_fetch)
    atomic_set = _on_context(_native.atomic_set)
    atomic_swap = _on_context(_native.atomic_swap)
    atomic_compare_swap = _on_context(_native.atomic_compare_swap)
    atomic_add = _on_context(_native.atomic_add)
    atomic_fetch_add = _on_context(_native.atomic_fetch_add)
    atomic_inc = _on_context(_native.atomic_inc)
    atomic_fetch_inc = _on_context(_native.atomic_fetch_inc)
    atomic_and = _on_context(_native.atomic_and)
    atomic_or = _on_context(_native.atomic_or)
    atomic_xor = _on_context(_native.atomic_xor)
    atomic_fetch_and = _on_context(_native.atomic_fetch_and)
    atomic_fetch_or = _on_context(_native.atomic_fetch_or)
    atomic_fetch_xor = _on_context(_native.atomic_fetch_xor)
    fence = _on_context(_native.fence)
    quiet = _on_context(_native.quiet)

    def destroy(self) -> None:
        """Complete the context's operations and end it. Destroying it again does nothing."""
        if self.alive:
            _native.quiet(ctx=self)
            self._end()

    def __enter__(self) -> Context:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.destroy()

    def __repr__(self) -> str:
        return f"<pypgas.Context on {self.team!r}{'' if self.alive else ', ended'}>"
