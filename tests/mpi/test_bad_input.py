# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments: the right exception on the PE that erred, nothing moved, and the job goes on."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import pypgas as pg
from pypgas.testing import pes


@pytest.fixture
def scene():
    """A symmetric array, a signal, and a check that neither has changed on any PE."""

    class Scene:
        x = pg.full((4, 6), 5, "i4")
        signal = pg.full(1, 3, "u8")
        source = np.full((4, 6), 9, "i4")
        to = (pg.my_pe() + 1) % pg.n_pes()

    scene = Scene()
    yield scene
    pg.barrier_all()
    assert np.all(scene.x.local == 5)
    assert scene.signal.local[0] == 3
    assert np.all(scene.source == 9)
    assert pg.reduce(1) == pg.n_pes()


ONE_SIDED = {
    "put": lambda s, **k: pg.put(k.get("x", s.x), k.get("source", s.source), k.get("pe", s.to)),
    "put_nbi": lambda s, **k: pg.put_nbi(k.get("x", s.x), k.get("source", s.source), k.get("pe", s.to)),
    "get": lambda s, **k: pg.get(k.get("source", s.source), k.get("x", s.x), k.get("pe", s.to)),
    "get_nbi": lambda s, **k: pg.get_nbi(k.get("source", s.source), k.get("x", s.x), k.get("pe", s.to)),
    "iput": lambda s, **k: pg.iput(k.get("x", s.x), k.get("source", s.source), 1, 1, 24, k.get("pe", s.to)),
    "iget": lambda s, **k: pg.iget(k.get("source", s.source), k.get("x", s.x), 1, 1, 24, k.get("pe", s.to)),
    "put_signal": lambda s, **k: pg.put_signal(
        k.get("x", s.x), k.get("source", s.source), s.signal, 1, k.get("pe", s.to)
    ),
}
one_sided = pytest.mark.parametrize("call", ONE_SIDED.values(), ids=ONE_SIDED)


@one_sided
def test_wrong_pe(scene, call):
    n = pg.n_pes()
    for pe in (-1, n, n + 100, 2**31, -(2**63), 2**64):
        with pytest.raises(pg.InvalidPEError):
            call(scene, pe=pe)
    for pe in (0.0, 1.5, "0", None, [0], np.float64(0), np.array([0, 0]), 1j, True):
        with pytest.raises(TypeError):
            call(scene, pe=pe)


@one_sided
def test_integers_of_any_kind_name_a_pe(scene, call):
    for pe in (np.int8(scene.to), np.uint64(scene.to), np.array(scene.to)):
        if call is ONE_SIDED["get"]:
            call(scene, source=scene.source.copy(), pe=pe)
        else:
            with pytest.raises(pg.PgasError):
                call(scene, source=scene.source.astype("f4"), pe=pe)


@one_sided
def test_wrong_dtype(scene, call):
    for dtype in ("i8", "u4", "f4", "?", "c8", ">i4", "S4", object, "i2,i2", "g"):
        with pytest.raises(pg.InvalidTypeError):
            call(scene, source=np.zeros((4, 6), dtype))


@one_sided
def test_wrong_shape(scene, call):
    if call in (ONE_SIDED["iput"], ONE_SIDED["iget"]):
        shapes = [(23,), (0,), (4, 5)]  # these count elements
    else:
        shapes = [(4, 5), (3, 6), (6, 4), (24,), (4, 6, 1), (1, 4, 6), (0, 6), ()]
    for shape in shapes:
        with pytest.raises(pg.InvalidValueError):
            call(scene, source=np.zeros(shape, "i4"))


@one_sided
def test_not_symmetric(scene, call):
    for other in (np.zeros((4, 6), "i4"), np.zeros((5, 6), "i4")[1:]):
        with pytest.raises(pg.NotSymmetricError):
            call(scene, x=other)
    for other in (None, 5, "x", object(), [[5] * 6] * 4):
        with pytest.raises(pg.InvalidTypeError):
            call(scene, x=other)


@one_sided
def test_a_view_that_leaves_its_array(scene, call):
    local = scene.x.local
    stepping_out = np.lib.stride_tricks.as_strided(local, (4, 6), (24, 2048))
    backwards = np.lib.stride_tricks.as_strided(local, (4, 6), (-4096, 4))
    for view in (stepping_out, backwards):
        with pytest.raises(pg.NotSymmetricError):
            call(scene, x=view)


@one_sided
def test_freed_and_stale_arrays(scene, call):
    gone = pg.zeros((4, 6), "i4")
    view, local = gone[:], gone.local
    gone.free()
    for other in (gone, view, local):
        with pytest.raises(pg.StaleArrayError):
            call(scene, x=other)
        with pytest.raises(pg.StaleArrayError):
            call(scene, source=other)


def test_read_only_targets(scene):
    frozen = scene.source[:]
    frozen.flags.writeable = False
    for name in ("get", "get_nbi", "iget"):
        with pytest.raises(pg.InvalidValueError):
            ONE_SIDED[name](scene, source=frozen)
    for target in (3, "x", None, b"123", [1, 2]):
        with pytest.raises(pg.InvalidTypeError):
            pg.get(target, scene.x, scene.to)


@pes(2, 3, 4)
def test_only_the_pe_that_erred_raises(scene):
    if pg.my_pe() == 0:
        with pytest.raises(pg.InvalidPEError):
            pg.put(scene.x, scene.source, 77)
    else:
        y = scene.x.at(0)[1].get()
        assert np.all(y == 5)


def test_wrong_teams_and_contexts(scene):
    for wrong in (0, "world", object(), pg.Context):
        with pytest.raises(pg.InvalidTypeError):
            pg.put(scene.x, scene.source, scene.to, team=wrong)
        with pytest.raises(pg.InvalidTypeError):
            pg.put(scene.x, scene.source, scene.to, ctx=wrong)
        with pytest.raises(pg.InvalidTypeError):
            pg.barrier(wrong)
        with pytest.raises(pg.InvalidTypeError):
            pg.quiet(wrong)


def test_wrong_comparisons_and_signal_operations(scene):
    for wrong in (pg.SIGNAL_SET, 0, 1, "EQ", ">=", None, 3.0):
        with pytest.raises(pg.InvalidTypeError):
            pg.wait_until(scene.signal, wrong, 3)
        with pytest.raises(pg.InvalidTypeError):
            pg.signal_wait_until(scene.signal, wrong, 3)
        with pytest.raises(pg.InvalidTypeError):
            pg.test(scene.signal, wrong, 3)
        with pytest.raises(pg.InvalidTypeError):
            pg.test_any(scene.signal, wrong, 3)
    for wrong in (pg.EQ, 0, 1, "SET", None):
        if wrong is None:
            continue
        with pytest.raises(pg.InvalidTypeError):
            pg.put_signal(scene.x, scene.source, scene.signal, 1, scene.to, op=wrong)


def test_wrong_signals(scene):
    for wrong in (scene.x[0, 0], pg.zeros(1, "i8"), pg.zeros(1, "f8")):
        with pytest.raises(pg.InvalidTypeError):
            pg.signal_set(wrong, 1, scene.to)
    for wrong in (pg.zeros(2, "u8"), pg.zeros(0, "u8"), np.zeros(1, "u8")):
        with pytest.raises(pg.InvalidValueError):
            pg.signal_set(wrong, 1, scene.to)
    for value in (-1, 2**64):
        with pytest.raises(pg.InvalidValueError):
            pg.signal_set(scene.signal, value, scene.to)
    for value in (1.5, "1", None):
        with pytest.raises(pg.InvalidTypeError):
            pg.signal_set(scene.signal, value, scene.to)


def test_values_that_do_not_fit(scene):
    one = scene.x[0, 0]
    for value in (2**31, -(2**31) - 1, 2**70):
        with pytest.raises(pg.InvalidValueError):
            pg.p(one, value, scene.to)
        with pytest.raises(pg.InvalidValueError):
            pg.atomic_set(one, value, scene.to)
        with pytest.raises(pg.InvalidValueError):
            pg.wait_until(one, pg.EQ, value)
    for value in (1.5, "1", None, 1j, object()):
        with pytest.raises(pg.InvalidTypeError):
            pg.p(one, value, scene.to)
        with pytest.raises(pg.InvalidTypeError):
            pg.atomic_add(one, value, scene.to)


def test_misaligned_variables(scene):
    raw = pg.zeros(64, "u1")
    odd = raw.local[1:9].view("u8")
    for call in (
        lambda: pg.atomic_add(odd, 1, scene.to),
        lambda: pg.signal_set(odd, 1, scene.to),
        lambda: pg.wait_until(odd, pg.EQ, 0),
    ):
        with pytest.raises(pg.InvalidValueError):
            call()
    pg.put(odd, np.array([7], "u8"), scene.to)  # plain data may lie anywhere
    pg.barrier_all()
    assert odd[0] == 7


def test_wrong_arguments_by_name_and_number(scene):
    for call in (
        lambda: pg.put(scene.x, scene.source),
        lambda: pg.put(scene.x),
        lambda: pg.put(scene.x, scene.source, 0, None, None, 3),
        lambda: pg.put(scene.x, scene.source, scene.to, no_such=3),
        lambda: pg.put(scene.x, scene.source, scene.to, pe=scene.to),
        lambda: pg.barrier_all(3),
        lambda: pg.wait_until(scene.signal, pg.EQ),
    ):
        with pytest.raises(TypeError):
            call()


def test_wrong_time_limits(scene):
    for wrong in (-1, -0.5, float("nan")):
        with pytest.raises(pg.InvalidValueError):
            pg.wait_until(scene.signal, pg.EQ, 3, timeout=wrong)
    for wrong in ("1", object()):
        with pytest.raises(pg.InvalidTypeError):
            pg.wait_until(scene.signal, pg.EQ, 3, timeout=wrong)


def test_errors_say_who_and_what(scene):
    for call in (
        lambda: pg.put(scene.x, scene.source, 99),
        lambda: pg.put(scene.x, scene.source.astype("f8"), scene.to),
        lambda: pg.put(scene.source, scene.source, scene.to),
        lambda: pg.atomic_add(scene.x, 1, scene.to),
        lambda: pg.broadcast(scene.source, 99),
        lambda: pg.zeros(-1),
        lambda: pg.TEAM_WORLD.split_strided(0, 1, 99),
    ):
        with pytest.raises(pg.PgasError) as caught:
            call()
        assert str(caught.value).startswith(f"PE {pg.my_pe()}: "), str(caught.value)


def test_a_different_init_while_initialised(scene):
    assert pg.init() is pg.init()  # the same again is the same runtime
    with pytest.raises(pg.PgasError):
        pg.init(heap_size=12345678)
    with pytest.raises((TypeError, ValueError)):
        pg.init(no_such_setting=1)
    assert pg.is_initialized()


def test_a_forked_child(scene):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        answer = []
        try:
            for call in (
                pg.my_pe,
                pg.barrier_all,
                pg.quiet,
                lambda: pg.put(scene.x, scene.source, scene.to),
                lambda: pg.atomic_inc(scene.x, scene.to, index=0),
                lambda: pg.zeros(3),
                lambda: scene.x.at(scene.to)[0].get(),
                lambda: pg.reduce(1),
                pg.finalize,
            ):
                try:
                    call()
                    answer.append("nothing")
                except BaseException as error:  # noqa: BLE001
                    answer.append(type(error).__name__)
            os.write(write, pickle.dumps(answer))
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        answer = pickle.loads(pipe.read())
    os.waitpid(child, 0)
    assert answer == ["ForkedChildError"] * 9


OUTSIDE = """
import sys
import numpy as np
import pypgas as pg
from pypgas import errors

calls = [
    pg.my_pe, pg.n_pes, pg.barrier_all, pg.sync_all, pg.quiet, pg.fence,
    lambda: pg.zeros(3), lambda: pg.alloc(3), lambda: pg.free(x), lambda: pg.heap_statistics(),
    lambda: pg.put(x, np.zeros(3), 0), lambda: pg.get(np.zeros(3), x, 0), lambda: pg.reduce(1),
    lambda: pg.atomic_inc(x, 0), lambda: pg.Lock(), lambda: pg.Context(), lambda: pg.broadcast(1, 0),
    lambda: pg.wait_until(x, pg.EQ, 0), lambda: pg.signal_fetch(x), lambda: pg.TEAM_WORLD.n_pes,
]

def check():
    for number, call in enumerate(calls):
        try:
            call()
        except errors.NotInitializedError:
            continue
        except errors.StaleArrayError:
            continue
        sys.exit(f"call {number} went through")

x = np.zeros(3)
assert not pg.is_initialized()
check()
for _ in range(2):
    pg.init()
    assert pg.is_initialized()
    x = pg.ones(3)
    assert pg.reduce(x).sum() == 3 * pg.n_pes()
    team, lock, ctx = pg.TEAM_WORLD.split(0), pg.Lock(), pg.Context()
    pg.finalize()
    assert not pg.is_initialized()
    check()
    old = x
pg.init()
for use in (lambda: pg.put(old, np.zeros(3), 0), lambda: old.local, lambda: old.fill(1), lambda: pg.free(old),
            lambda: pg.sync(team), lock.acquire, lambda: pg.quiet(ctx)):
    try:
        use()
    except errors.PgasError:
        continue
    sys.exit("a stale object was used")
pg.finalize()
"""


@pes(1)
def test_calls_outside_init_and_finalize():
    launchers = ("OMPI_", "PMI", "PMIX", "MPI_LOCAL", "HYDRA", "SLURM_", "PRTE_", "PYPGAS_")
    environ = {k: v for k, v in os.environ.items() if not k.startswith(launchers)}
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", OUTSIDE],
        env=environ,
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert result.returncode == 0, result.stderr
