# SPDX-License-Identifier: Apache-2.0
"""pypgas under OpenSHMEM's names, as shmem4py 1.0 spells them.

A shmem4py program runs with one line changed::

    from pypgas import shmem  # was: from shmem4py import shmem

Importing this module initialises the runtime, which is collective over all PEs; see
:mod:`pypgas.rc` to choose otherwise. Arrays are :class:`numpy.ndarray` whose memory is symmetric.
Everything is done by the operations of :mod:`pypgas`, whose objects may be mixed with these:
``pypgas.put`` accepts an array from here, and ``x.local`` of a
:class:`pypgas.SymmetricArray` is an array here.

Where shmem4py differs:

* errors are those of :mod:`pypgas.errors` (each also a ``ValueError``, ``TypeError``, ... and, for
  memory freed twice, a ``KeyError``) and raised where shmem4py asserts;
* an array that is dropped without ``free`` is released safely, at a later barrier or allocation;
* there is no ``ffi`` or ``lib``; handles of signals are arrays of one ``uint64``, handles of locks
  are :class:`pypgas.Lock` objects.
"""

from pypgas.shmem._atomics import (
    Number,
    atomic_add,
    atomic_and,
    atomic_compare_swap,
    atomic_compare_swap_nbi,
    atomic_fetch,
    atomic_fetch_add,
    atomic_fetch_add_nbi,
    atomic_fetch_and,
    atomic_fetch_and_nbi,
    atomic_fetch_inc,
    atomic_fetch_inc_nbi,
    atomic_fetch_nbi,
    atomic_fetch_op,
    atomic_fetch_op_nbi,
    atomic_fetch_or,
    atomic_fetch_or_nbi,
    atomic_fetch_xor,
    atomic_fetch_xor_nbi,
    atomic_inc,
    atomic_op,
    atomic_or,
    atomic_set,
    atomic_swap,
    atomic_swap_nbi,
    atomic_xor,
)
from pypgas.shmem._collectives import (
    alltoall,
    alltoalls,
    and_reduce,
    barrier_all,
    broadcast,
    collect,
    fcollect,
    max_reduce,
    min_reduce,
    or_reduce,
    prod_reduce,
    reduce,
    sum_reduce,
    sync,
    sync_all,
    xor_reduce,
)
from pypgas.shmem._enums import (
    AMO,
    CMP,
    CTX,
    MALLOC,
    OP,
    SIGNAL,
    THREAD,
)
from pypgas.shmem._lifecycle import (
    MAJOR_VERSION,
    MINOR_VERSION,
    VENDOR_STRING,
    finalize,
    global_exit,
    info_get_name,
    info_get_version,
    init,
    init_thread,
    my_pe,
    n_pes,
    pcontrol,
    query_thread,
)
from pypgas.shmem._lifecycle import start as _start
from pypgas.shmem._memory import (
    FreedError,
    addr_accessible,
    alloc,
    array,
    del_array,
    empty,
    free,
    fromalloc,
    full,
    new_array,
    ones,
    pe_accessible,
    ptr,
    zeros,
)
from pypgas.shmem._objects import (
    CTX_DEFAULT,
    CTX_INVALID,
    TEAM_INVALID,
    TEAM_SHARED,
    TEAM_WORLD,
    Ctx,
    InvalidHandleError,
    Lock,
    LockHandle,
    Team,
    clear_lock,
    del_lock,
    fence,
    new_lock,
    quiet,
    set_lock,
    test_lock,
)
from pypgas.shmem._rma import (
    SigAddr,
    del_signal,
    get,
    get_nbi,
    iget,
    iput,
    new_signal,
    put,
    put_nbi,
    put_signal,
    put_signal_nbi,
    signal_fetch,
    signal_wait_until,
)
from pypgas.shmem._waits import (
    test,
    test_all,
    test_all_vector,
    test_any,
    test_any_vector,
    test_some,
    test_some_vector,
    wait_until,
    wait_until_all,
    wait_until_all_vector,
    wait_until_any,
    wait_until_any_vector,
    wait_until_some,
    wait_until_some_vector,
)

THREAD_SINGLE = THREAD.SINGLE
THREAD_FUNNELED = THREAD.FUNNELED
THREAD_SERIALIZED = THREAD.SERIALIZED
THREAD_MULTIPLE = THREAD.MULTIPLE

CTX_PRIVATE = CTX.PRIVATE
CTX_SERIALIZED = CTX.SERIALIZED
CTX_NOSTORE = CTX.NOSTORE

MALLOC_ATOMICS_REMOTE = MALLOC.ATOMICS_REMOTE
MALLOC_SIGNAL_REMOTE = MALLOC.SIGNAL_REMOTE

SIGNAL_SET = SIGNAL.SET
SIGNAL_ADD = SIGNAL.ADD

AMO_SET = AMO.SET
AMO_INC = AMO.INC
AMO_ADD = AMO.ADD
AMO_AND = AMO.AND
AMO_OR = AMO.OR
AMO_XOR = AMO.XOR

OP_AND = OP.AND
OP_OR = OP.OR
OP_XOR = OP.XOR
OP_MAX = OP.MAX
OP_MIN = OP.MIN
OP_SUM = OP.SUM
OP_PROD = OP.PROD

CMP_EQ = CMP.EQ
CMP_NE = CMP.NE
CMP_GT = CMP.GT
CMP_LE = CMP.LE
CMP_LT = CMP.LT
CMP_GE = CMP.GE

__all__ = [
    "AMO",
    "AMO_ADD",
    "AMO_AND",
    "AMO_INC",
    "AMO_OR",
    "AMO_SET",
    "AMO_XOR",
    "CMP",
    "CMP_EQ",
    "CMP_GE",
    "CMP_GT",
    "CMP_LE",
    "CMP_LT",
    "CMP_NE",
    "CTX",
    "CTX_DEFAULT",
    "CTX_INVALID",
    "CTX_NOSTORE",
    "CTX_PRIVATE",
    "CTX_SERIALIZED",
    "MAJOR_VERSION",
    "MALLOC",
    "MALLOC_ATOMICS_REMOTE",
    "MALLOC_SIGNAL_REMOTE",
    "MINOR_VERSION",
    "OP",
    "OP_AND",
    "OP_MAX",
    "OP_MIN",
    "OP_OR",
    "OP_PROD",
    "OP_SUM",
    "OP_XOR",
    "SIGNAL",
    "SIGNAL_ADD",
    "SIGNAL_SET",
    "TEAM_INVALID",
    "TEAM_SHARED",
    "TEAM_WORLD",
    "THREAD",
    "THREAD_FUNNELED",
    "THREAD_MULTIPLE",
    "THREAD_SERIALIZED",
    "THREAD_SINGLE",
    "VENDOR_STRING",
    "Ctx",
    "FreedError",
    "InvalidHandleError",
    "Lock",
    "LockHandle",
    "Number",
    "SigAddr",
    "Team",
    "addr_accessible",
    "alloc",
    "alltoall",
    "alltoalls",
    "and_reduce",
    "array",
    "atomic_add",
    "atomic_and",
    "atomic_compare_swap",
    "atomic_compare_swap_nbi",
    "atomic_fetch",
    "atomic_fetch_add",
    "atomic_fetch_add_nbi",
    "atomic_fetch_and",
    "atomic_fetch_and_nbi",
    "atomic_fetch_inc",
    "atomic_fetch_inc_nbi",
    "atomic_fetch_nbi",
    "atomic_fetch_op",
    "atomic_fetch_op_nbi",
    "atomic_fetch_or",
    "atomic_fetch_or_nbi",
    "atomic_fetch_xor",
    "atomic_fetch_xor_nbi",
    "atomic_inc",
    "atomic_op",
    "atomic_or",
    "atomic_set",
    "atomic_swap",
    "atomic_swap_nbi",
    "atomic_xor",
    "barrier_all",
    "broadcast",
    "clear_lock",
    "collect",
    "del_array",
    "del_lock",
    "del_signal",
    "empty",
    "fcollect",
    "fence",
    "finalize",
    "free",
    "fromalloc",
    "full",
    "get",
    "get_nbi",
    "global_exit",
    "iget",
    "info_get_name",
    "info_get_version",
    "init",
    "init_thread",
    "iput",
    "max_reduce",
    "min_reduce",
    "my_pe",
    "n_pes",
    "new_array",
    "new_lock",
    "new_signal",
    "ones",
    "or_reduce",
    "pcontrol",
    "pe_accessible",
    "prod_reduce",
    "ptr",
    "put",
    "put_nbi",
    "put_signal",
    "put_signal_nbi",
    "query_thread",
    "quiet",
    "reduce",
    "set_lock",
    "signal_fetch",
    "signal_wait_until",
    "sum_reduce",
    "sync",
    "sync_all",
    "test",
    "test_all",
    "test_all_vector",
    "test_any",
    "test_any_vector",
    "test_lock",
    "test_some",
    "test_some_vector",
    "wait_until",
    "wait_until_all",
    "wait_until_all_vector",
    "wait_until_any",
    "wait_until_any_vector",
    "wait_until_some",
    "wait_until_some_vector",
    "xor_reduce",
    "zeros",
]

_start()
