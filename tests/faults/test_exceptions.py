# SPDX-License-Identifier: Apache-2.0
"""A PE leaves by an exception or sys.exit while the others wait for it."""

import pytest

SETTING = """
import numpy as np
with pg.init():
    me, n = begin()
    flag = pg.zeros(1, dtype="u8")
    pg.barrier_all()
    if me == 1:
        time.sleep(0.5)
        note("failing")
        {failure}
    with noting_errors():
        {wait}
note("went on")
"""


def check_others(job):
    (failing,) = job.events("failing")
    raised = {event["pe"]: event for event in job.events("raised")}
    assert sorted(raised) == [pe for pe in range(job.n) if pe != 1], job.story()
    for event in raised.values():
        assert event["type"] == "PeerFailedError", job.story()
        assert event["pes"] == [1], job.story()
        assert event["time"] - failing["time"] < 2.0, job.story()
    assert not job.events("went on"), job.story()
    job.assert_nothing_remains()


@pytest.mark.parametrize(
    ("n", "wait"),
    [(4, "pg.barrier_all()"), (2, "pg.signal_wait_until(flag, pg.GE, 1)"), (3, "pg.reduce(1.0)")],
)
def test_exception(start, n, wait):
    job = start(n, SETTING.format(failure="raise ValueError('the sky fell')", wait=wait))
    assert job.wait() == 1, job.story()
    check_others(job)
    assert job.errors.count("ValueError: the sky fell") >= 1
    assert job.errors.count("Traceback (most recent call last)") == 1, job.story()


@pytest.mark.parametrize("n", [2, 3])
def test_sys_exit(start, n):
    job = start(n, SETTING.format(failure="sys.exit(3)", wait="pg.barrier_all()"))
    assert job.wait() == 3, job.story()
    check_others(job)


def test_exception_outside_with(start):
    job = start(
        3,
        """
        pg.init()
        me, n = begin()
        pg.barrier_all()
        if me == 1:
            time.sleep(0.5)
            note("failing")
            raise ValueError("the sky fell")
        with noting_errors():
            pg.barrier_all()
        note("went on")
        """,
    )
    assert job.wait() == 1, job.story()
    check_others(job)


def test_os_exit(start):
    job = start(2, SETTING.format(failure="os._exit(5)", wait="pg.barrier_all()"))
    assert job.wait() == 5, job.story()
    check_others(job)


def test_abort(start):
    job = start(3, SETTING.format(failure="pg.abort(9, 'enough of this')", wait="pg.barrier_all()"))
    assert job.wait() == 9, job.story()
    assert "enough of this" in job.errors
    assert not job.events("went on")
    job.assert_nothing_remains()


def test_recovering_from_ones_own_error(start):
    # An error before anything moved harms nobody.
    job = start(
        2,
        """
        from pypgas.errors import InvalidPEError
        with pg.init():
            me, n = begin()
            x = pg.zeros(4)
            try:
                pg.put(x, x.local, 99 if me == 0 else 0)
            except InvalidPEError:
                note("caught")
            pg.barrier_all()
        note("went on")
        """,
    )
    assert job.wait() == 0, job.story()
    assert len(job.events("caught")) == 1
    assert len(job.events("went on")) == 2
    job.assert_nothing_remains()


@pytest.mark.parametrize("n", [2, 3, 4])
def test_finalize_while_others_wait(start, n):
    # finalize() is collective; one PE that calls it early does not fit the others' barrier.
    job = start(
        n,
        """
        pg.init()
        me, n = begin()
        with noting_errors():
            if me == 1:
                pg.finalize()
            else:
                pg.barrier_all()
        note("went on")
        """,
    )
    assert job.wait() != 0, job.story()
    assert not job.events("went on"), job.story()
    types = {event["pe"]: event["type"] for event in job.events("raised")}
    assert "CollectiveMismatchError" in types.values(), job.story()
    assert set(types.values()) <= {"CollectiveMismatchError", "PeerFailedError"}, job.story()
    assert len(types) == n, job.story()
    job.assert_nothing_remains()


MISMATCHES = {
    "operation": ("pg.barrier_all()", "pg.zeros(10)"),
    "size": ("pg.zeros(10)", "pg.zeros(11)"),
    "dtype": ("pg.reduce(np.ones(4, 'f8'))", "pg.reduce(np.ones(4, 'f4'))"),
    "reduction": ("pg.reduce(1.0, op='sum')", "pg.reduce(1.0, op='max')"),
    "root": ("pg.broadcast(np.ones(3), root=0)", "pg.broadcast(np.ones(3), root=1)"),
    "length": ("pg.fcollect(np.ones(3))", "pg.fcollect(np.ones(4))"),
    "freed array": ("x.free()", "y.free()"),
    "team": ("pg.TEAM_WORLD.split_strided(0, 1, 2)", "pg.TEAM_WORLD.split_strided(0, 1, 1)"),
}


@pytest.mark.parametrize(("what", "n"), [*((what, 3) for what in MISMATCHES), ("operation", 2), ("size", 4)])
def test_mismatched_collectives(start, what, n):
    usual, odd = MISMATCHES[what]
    job = start(
        n,
        f"""
        import numpy as np
        pg.init()
        me, n = begin()
        x, y = pg.zeros(3), pg.zeros(3)
        pg.barrier_all()
        with noting_errors():
            if me == n - 1:
                {odd}
            else:
                {usual}
        note("went on")
        """,
    )
    assert job.wait() != 0, job.story()
    raised = {event["pe"]: event for event in job.events("raised")}
    assert sorted(raised) == list(range(n)), job.story()
    for event in raised.values():
        assert event["type"] == "CollectiveMismatchError", job.story()
        assert event["pes"], job.story()
        if n > 2:  # with two, either may be the odd one
            assert event["pes"] == [n - 1], job.story()
    assert not job.events("went on"), job.story()
    job.assert_nothing_remains()
