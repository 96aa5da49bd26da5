# SPDX-License-Identifier: Apache-2.0
"""Types of the extension module, for type checkers."""

from collections.abc import Sequence
from typing import Any, Self, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from .core.team import Team
from .devices.streams import Stream
from .dtypes import Compare, SignalOp
from .memory.array import SymmetricArray
from .memory.remote import RemoteHandle
from .ops.contexts import Context

_Array: TypeAlias = npt.NDArray[Any]
_Symmetric: TypeAlias = SymmetricArray | _Array
_Target: TypeAlias = SymmetricArray | RemoteHandle | _Array
_Index: TypeAlias = SupportsIndex | tuple[SupportsIndex, ...] | Sequence[int] | _Array | None
_Pe: TypeAlias = SupportsIndex | None
_Pes: TypeAlias = SupportsIndex | Sequence[int] | _Array | None

class Allocation:
    @property
    def offset(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def id(self) -> int: ...
    @property
    def live(self) -> bool: ...

class ArrayBase:
    def __new__(cls, local: _Array, allocation: Allocation) -> Self: ...
    @property
    def local(self) -> _Array: ...
    @property
    def _view(self) -> _Array: ...
    @property
    def _allocation(self) -> Allocation: ...

class HandleBase:
    def __new__(cls, array: SymmetricArray, pe: int) -> Self: ...
    @property
    def array(self) -> SymmetricArray: ...
    @property
    def pe(self) -> int: ...

class TeamBase:
    def __new__(cls, number: int, members: tuple[int, ...]) -> Self: ...
    @property
    def my_pe(self) -> int: ...
    @property
    def n_pes(self) -> int: ...
    @property
    def pes(self) -> tuple[int, ...]: ...
    @property
    def alive(self) -> bool: ...
    @property
    def _id(self) -> int: ...
    def _end(self) -> None: ...

class ContextBase:
    def __new__(cls, team: Team | None = None) -> Self: ...
    @property
    def team(self) -> Team: ...
    @property
    def alive(self) -> bool: ...
    def _end(self) -> None: ...

class EventBase:
    def __new__(cls) -> Self: ...
    def _state(self) -> tuple[int, int, float]: ...
    def _wait(self, seconds: float) -> bool: ...

class StreamBase:
    def __new__(cls) -> Self: ...
    def _synchronize(self, timeout: float | None = None) -> None: ...
    def _done(self) -> bool: ...
    def _record(self, event: EventBase) -> None: ...
    def _wait(self, event: EventBase) -> None: ...

class CpuModule:
    @property
    def types(self) -> list[str]: ...

def cpu_module(path: str, keep_path: bool = False) -> CpuModule: ...
def cpu_launch(
    module: CpuModule,
    index: int,
    name: str,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    shared: int,
    args: bytes,
    offsets: tuple[int, ...],
    stream: Stream | None,
    cooperative: bool,
    keep: tuple[object, ...],
) -> None: ...
def synchronize_default(timeout: float | None) -> None: ...
def synchronize_all(timeout: float | None) -> None: ...
def abandon_streams() -> None: ...
def team_address(team: TeamBase) -> int: ...
def context_address(context: Context) -> int: ...

# ---- runtime
def bind(table: dict[str, object]) -> None: ...
def attach(
    pe: int,
    mapping: int,
    mapped: int,
    areas: Sequence[int],
    heaps: Sequence[int],
    heap_bytes: int,
    max_teams: int,
    staging_bytes: int,
    pidfds: Sequence[int],
    spins: int,
) -> None: ...
def detach(phase: int, reason: str) -> None: ...
def prepare_area(address: int, max_teams: int, staging_bytes: int, pid: int) -> None: ...
def area_bytes(max_teams: int, staging_bytes: int) -> int: ...
def set_world(team: Team) -> None: ...
def set_waits(timeout: float, report: float) -> None: ...
def mark_forked() -> None: ...
def check(operation: str) -> None: ...
def is_active() -> bool: ...
def status(pe: int) -> dict[str, Any]: ...
def publish_site(text: str, tag: int) -> None: ...
def my_pe(team: Team | None = None) -> int: ...
def n_pes(team: Team | None = None) -> int: ...
def world_pe(operation: str, pe: SupportsIndex, team: Team | None) -> int: ...

# ---- memory
def reserve(nbytes: int) -> int: ...
def map_at(address: int, fd: int, nbytes: int) -> None: ...
def unmap(address: int, nbytes: int) -> None: ...
def zero(address: int, nbytes: int) -> None: ...
def allocation(offset: int, nbytes: int, id: int) -> Allocation: ...
def end_allocation(allocation: Allocation) -> None: ...
def local_array(allocation: Allocation, dtype: np.dtype[Any], shape: tuple[int, ...]) -> _Array: ...
def peer_array(array: _Symmetric, pe: SupportsIndex) -> _Array | None: ...
def symmetric_offset(obj: object) -> int | None: ...
def address(array: _Array) -> int: ...
def block_at(obj: object) -> Allocation | None: ...
def garbage_count() -> int: ...

# ---- one-sided operations
def put(
    target: _Target,
    source: Any,
    pe: _Pe = None,
    *,
    team: Team | None = None,
    ctx: Context | None = None,
    stream: Stream | None = None,
) -> None: ...
def put_nbi(
    target: _Target,
    source: Any,
    pe: _Pe = None,
    *,
    team: Team | None = None,
    ctx: Context | None = None,
    stream: Stream | None = None,
) -> None: ...
def get(
    target: Any,
    source: _Target,
    pe: _Pe = None,
    *,
    team: Team | None = None,
    ctx: Context | None = None,
    stream: Stream | None = None,
) -> None: ...
def get_nbi(
    target: Any,
    source: _Target,
    pe: _Pe = None,
    *,
    team: Team | None = None,
    ctx: Context | None = None,
    stream: Stream | None = None,
) -> None: ...
def p(
    target: _Target,
    value: Any,
    pe: _Pe = None,
    *,
    team: Team | None = None,
    ctx: Context | None = None,
    stream: Stream | None = None,
) -> None: ...
def g(source: _Target, pe: _Pe = None, *, team: Team | None = None, ctx: Context | None = None) -> Any: ...
def iput(
    target: _Target,
    source: Any,
    tst: SupportsIndex,
    sst: SupportsIndex,
    nelems: SupportsIndex,
    pe: _Pe = None,
    *,
    team: Team | None = None,
    ctx: Context | None = None,
    stream: Stream | None = None,
) -> None: ...
def iget(
    target: Any,
    source: _Target,
    tst: SupportsIndex,
    sst: SupportsIndex,
    nelems: SupportsIndex,
    pe: _Pe = None,
    *,
    team: Team | None = None,
    ctx: Context | None = None,
    stream: Stream | None = None,
) -> None: ...
def put_signal(
    target: _Target,
    source: Any,
    signal: _Target,
    value: SupportsIndex,
    pe: _Pe = None,
    *,
    op: SignalOp = ...,
    team: Team | None = None,
    ctx: Context | None = None,
    stream: Stream | None = None,
) -> None: ...
def put_signal_nbi(
    target: _Target,
    source: Any,
    signal: _Target,
    value: SupportsIndex,
    pe: _Pe = None,
    *,
    op: SignalOp = ...,
    team: Team | None = None,
    ctx: Context | None = None,
    stream: Stream | None = None,
) -> None: ...
def signal_set(
    signal: _Target,
    value: SupportsIndex,
    pe: _Pe = None,
    *,
    team: Team | None = None,
    ctx: Context | None = None,
    stream: Stream | None = None,
) -> None: ...
def signal_add(
    signal: _Target,
    value: SupportsIndex,
    pe: _Pe = None,
    *,
    team: Team | None = None,
    ctx: Context | None = None,
    stream: Stream | None = None,
) -> None: ...
def fence(ctx: Context | None = None, *, stream: Stream | None = None) -> None: ...
def quiet(ctx: Context | None = None, *, stream: Stream | None = None) -> None: ...

# ---- atomics
def atomic_fetch(
    target: _Target,
    pe: _Pes = None,
    *,
    index: _Index = None,
    team: Team | None = None,
    ctx: Context | None = None,
    stream: Stream | None = None,
    out: Any = None,
) -> Any: ...
def atomic_set(
    target: _Target,
    value: Any,
    pe: _Pes = None,
    *,
    index: _Index = None,
    team: Team | None = None,
    ctx: Context | None = None,
    stream: Stream | None = None,
) -> None: ...
def atomic_swap(
    target: _Target,
    value: Any,
    pe: _Pes = None,
    *,
    index: _Index = None,
    team: Team | None = None,
    ctx: Context | None = None,
    stream: Stream | None = None,
    out: Any = None,
) -> Any: ...
def atomic_compare_swap(
    target: _Target,
    cond: Any,
    value: Any,
    pe: _Pes = None,
    *,
    index: _Index = None,
    team: Team | None = None,
    ctx: Context | None = None,
    stream: Stream | None = None,
    out: Any = None,
) -> Any: ...
def atomic_add(
    target: _Target,
    value: Any,
    pe: _Pes = None,
    *,
    index: _Index = None,
    team: Team | None = None,
    ctx: Context | None = None,
    stream: Stream | None = None,
) -> None: ...
def atomic_fetch_add(
    target: _Target,
    value: Any,
    pe: _Pes = None,
    *,
    index: _Index = None,
    team: Team | None = None,
    ctx: Context | None = None,
    stream: Stream | None = None,
    out: Any = None,
) -> Any: ...
def atomic_inc(
    target: _Target,
    pe: _Pes = None,
    *,
    index: _Index = None,
    team: Team | None = None,
    ctx: Context | None = None,
    stream: Stream | None = None,
) -> None: ...
def atomic_fetch_inc(
    target: _Target,
    pe: _Pes = None,
    *,
    index: _Index = None,
    team: Team | None = None,
    ctx: Context | None = None,
    stream: Stream | None = None,
    out: Any = None,
) -> Any: ...
def atomic_and(
    target: _Target,
    value: Any,
    pe: _Pes = None,
    *,
    index: _Index = None,
    team: Team | None = None,
    ctx: Context | None = None,
    stream: Stream | None = None,
) -> None: ...
def atomic_or(
    target: _Target,
    value: Any,
    pe: _Pes = None,
    *,
    index: _Index = None,
    team: Team | None = None,
    ctx: Context | None = None,
    stream: Stream | None = None,
) -> None: ...
def atomic_xor(
    target: _Target,
    value: Any,
    pe: _Pes = None,
    *,
    index: _Index = None,
    team: Team | None = None,
    ctx: Context | None = None,
    stream: Stream | None = None,
) -> None: ...
def atomic_fetch_and(
    target: _Target,
    value: Any,
    pe: _Pes = None,
    *,
    index: _Index = None,
    team: Team | None = None,
    ctx: Context | None = None,
    stream: Stream | None = None,
    out: Any = None,
) -> Any: ...
def atomic_fetch_or(
    target: _Target,
    value: Any,
    pe: _Pes = None,
    *,
    index: _Index = None,
    team: Team | None = None,
    ctx: Context | None = None,
    stream: Stream | None = None,
    out: Any = None,
) -> Any: ...
def atomic_fetch_xor(
    target: _Target,
    value: Any,
    pe: _Pes = None,
    *,
    index: _Index = None,
    team: Team | None = None,
    ctx: Context | None = None,
    stream: Stream | None = None,
    out: Any = None,
) -> Any: ...

# ---- waits
def wait_until(
    ivar: _Symmetric, cmp: Compare, value: Any, *, timeout: float | None = None, stream: Stream | None = None
) -> None: ...
def test(ivar: _Symmetric, cmp: Compare, value: Any) -> bool: ...
def signal_wait_until(
    signal: _Target, cmp: Compare, value: SupportsIndex, *, timeout: float | None = None
) -> int: ...
def signal_fetch(signal: _Target) -> int: ...
def wait_until_all(
    ivars: _Symmetric, cmp: Compare, values: Any, *, where: Any = None, timeout: float | None = None
) -> None: ...
def wait_until_any(
    ivars: _Symmetric, cmp: Compare, values: Any, *, where: Any = None, timeout: float | None = None
) -> int | None: ...
def wait_until_some(
    ivars: _Symmetric, cmp: Compare, values: Any, *, where: Any = None, timeout: float | None = None
) -> npt.NDArray[np.int64]: ...
def test_all(ivars: _Symmetric, cmp: Compare, values: Any, *, where: Any = None) -> bool: ...
def test_any(ivars: _Symmetric, cmp: Compare, values: Any, *, where: Any = None) -> int | None: ...
def test_some(
    ivars: _Symmetric, cmp: Compare, values: Any, *, where: Any = None
) -> npt.NDArray[np.int64]: ...

# ---- teams and collectives
def barrier(
    team: Team | None = None, *, timeout: float | None = None, stream: Stream | None = None
) -> None: ...
def barrier_all(*, timeout: float | None = None, stream: Stream | None = None) -> None: ...
def sync(team: Team | None = None, *, timeout: float | None = None, stream: Stream | None = None) -> None: ...
def sync_all(*, timeout: float | None = None, stream: Stream | None = None) -> None: ...
def agree(
    name: str, operation: str, team: Team | None, nbytes: int, detail: int, timeout: float | None
) -> None: ...
def exchange_small(
    name: str, operation: str, team: Team | None, detail: int, payload: bytes, timeout: float | None
) -> list[bytes]: ...
def operation_code(name: str) -> int: ...
def collective(
    name: str,
    operation: int,
    team: Team | None,
    source: _Array,
    destination: _Array,
    root: int,
    op: str,
    timeout: float | None,
    stream: Stream | None,
) -> None: ...

# ---- locks
def lock_acquire(words: _Symmetric, home: int, timeout: float | None) -> int: ...
def lock_test(words: _Symmetric, home: int) -> int | None: ...
def lock_release(words: _Symmetric, home: int, ticket: int) -> None: ...
def lock_bytes() -> int: ...
