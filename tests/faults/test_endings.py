# SPDX-License-Identifier: Apache-2.0
"""The ways a program may end without anybody having failed, and forked children."""

import pytest

ENDINGS = {
    "finalize": "pg.finalize()",
    "nothing said": "",
    "arrays alive": "kept = [pg.zeros(10)]; cycle = [kept]; cycle.append(cycle)",
    "sys.exit": "sys.exit(0)",
    "again": "pg.finalize(); pg.init(); pg.barrier_all(); pg.finalize(); pg.init()",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_endings(start, ending):
    job = start(
        3,
        f"""
        pg.init()
        me, n = begin()
        x = pg.zeros(4)
        pg.barrier_all()
        x.free()
        {ENDINGS[ending]}
        """,
        environment={"PYTHONWARNINGS": "default"},
    )
    assert job.wait() == 0, job.story()
    assert ("LeakWarning" in job.errors) == (ending == "arrays alive"), job.story()
    assert "Traceback" not in job.errors, job.story()
    job.assert_nothing_remains()


def test_an_array_of_an_earlier_runtime(start):
    job = start(
        2,
        """
        import numpy as np
        from pypgas.errors import StaleArrayError
        pg.init()
        me, n = begin()
        old = pg.zeros(4)
        view = old[1:]
        pg.finalize()
        with pg.init():
            new = pg.zeros(4)
            for stale in (old, view):
                try:
                    pg.put(stale, np.ones(stale.size), 0)
                except StaleArrayError:
                    note("stale")
            del old, view, stale
            pg.barrier_all()
            pg.barrier_all()
            assert (new.local == 0).all()
            new.free()
        """,
    )
    assert job.wait() == 0, job.story()
    assert len(job.events("stale")) == 4


def test_forked_children(start):
    # A child may do what it likes but use pypgas, and its end is nobody's business.
    job = start(
        2,
        """
        from pypgas.errors import ForkedChildError
        with pg.init():
            me, n = begin()
            x = pg.zeros(4)
            pg.barrier_all()
            child = os.fork()
            if child == 0:
                for call in (pg.barrier_all, lambda: pg.zeros(3), lambda: pg.g(x[0], 0), pg.quiet):
                    try:
                        call()
                    except ForkedChildError:
                        note("refused")
                os._exit(0 if me == 0 else 9)
            os.waitpid(child, 0)
            pg.barrier_all()
            note("together")
            x.free()
        """,
    )
    assert job.wait() == 0, job.story()
    assert len(job.events("refused")) == 8, job.story()
    assert len(job.events("together")) == 2
    job.assert_nothing_remains()


def test_a_forked_child_that_exits_as_python_does(start):
    job = start(
        2,
        """
        with pg.init():
            me, n = begin()
            pg.barrier_all()
            child = os.fork()
            if child == 0:
                sys.exit(0) if me == 0 else 1 / 0
            note("child", code=os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            pg.barrier_all()
            note("together")
        """,
    )
    assert job.wait() == 0, job.story()
    assert {event["pe"]: event["code"] for event in job.events("child")} == {0: 0, 1: 1}
    assert job.errors.count("ZeroDivisionError") == 1, job.story()
    assert len(job.events("together")) == 2
    job.assert_nothing_remains()
