# SPDX-License-Identifier: Apache-2.0
"""Teams: splitting, numbering, and using them."""

import numpy as np
import pytest

import pypgas as pg


def members_of(start, stride, size):
    return [start + i * stride for i in range(size)]


def test_world():
    me, n = pg.my_pe(), pg.n_pes()
    world = pg.TEAM_WORLD
    assert (world.my_pe, world.n_pes) == (me, n)
    assert tuple(world.pes) == tuple(range(n))
    assert (pg.my_pe(world), pg.n_pes(world)) == (me, n)
    assert [world.translate_pe(pe, world) for pe in range(n)] == list(range(n))


def test_teams_of_the_node():
    me, n = pg.my_pe(), pg.n_pes()
    x = pg.zeros(1, "i4")
    for team in (pg.TEAM_SHARED, pg.TEAM_NODE):
        assert me in team.pes
        assert team.pes[team.my_pe] == me
        assert team.n_pes == len(team.pes) <= n
        for pe in team.pes:
            assert x.peer(pe) is not None


def test_every_strided_split():
    me, n = pg.my_pe(), pg.n_pes()
    for start in range(n):
        for stride in (*range(-n, 0), *range(1, n + 1)):
            for size in range(1, n + 1):
                pes = members_of(start, stride, size)
                if not all(0 <= pe < n for pe in pes):
                    continue
                team = pg.TEAM_WORLD.split_strided(start, stride, size)
                if me in pes:
                    assert tuple(team.pes) == tuple(pes)
                    assert team.my_pe == pes.index(me)
                    assert team.n_pes == size
                    assert pg.reduce(me, team=team) == sum(pes)
                    team.destroy()
                else:
                    assert team is None


def test_a_team_of_one_by_stride_zero():
    me, n = pg.my_pe(), pg.n_pes()
    team = pg.TEAM_WORLD.split_strided(n - 1, 0, 1)
    assert (team is not None) == (me == n - 1)
    if team is not None:
        assert tuple(team.pes) == (me,)
        team.destroy()


def test_invalid_splits_fail_on_every_pe():
    n = pg.n_pes()
    for start, stride, size in [
        (0, 1, n + 1),
        (0, 1, 0),
        (0, 1, -1),
        (n, 1, 1),
        (-1, 1, 1),
        (0, 0, 2),
        (0, -1, 2),
        (n - 1, 1, 2),
        (0, 2**40, 2),
    ]:
        with pytest.raises(ValueError):
            pg.TEAM_WORLD.split_strided(start, stride, size)
    for wrong in [(0.0, 1, 1), (0, "1", 1), (0, 1, None)]:
        with pytest.raises(TypeError):
            pg.TEAM_WORLD.split_strided(*wrong)
    pg.barrier_all()


def test_split_2d():
    me, n = pg.my_pe(), pg.n_pes()
    for columns in (1, 2, 3, n, n + 3):
        width = min(columns, n)
        row, column = pg.TEAM_WORLD.split_2d(columns)
        x, y = me % width, me // width
        assert tuple(row.pes) == tuple(pe for pe in range(n) if pe // width == y)
        assert tuple(column.pes) == tuple(pe for pe in range(n) if pe % width == x)
        assert row.my_pe == x
        assert column.my_pe == y
        assert pg.reduce(1, team=row) == row.n_pes
        assert pg.reduce(1, team=column) == column.n_pes
        row.destroy()
        column.destroy()
    with pytest.raises(ValueError):
        pg.TEAM_WORLD.split_2d(0)


def test_split_by_colour_and_key():
    me, n = pg.my_pe(), pg.n_pes()
    team = pg.TEAM_WORLD.split(me % 2, key=-me)
    pes = sorted((pe for pe in range(n) if pe % 2 == me % 2), reverse=True)
    assert tuple(team.pes) == tuple(pes)
    team.destroy()
    team = pg.TEAM_WORLD.split(7)  # equal keys keep the parent's order
    assert tuple(team.pes) == tuple(range(n))
    team.destroy()
    team = pg.TEAM_WORLD.split(None if me == 0 else 1)
    assert (team is None) == (me == 0)
    if team is not None:
        assert tuple(team.pes) == tuple(range(1, n))
        team.destroy()


def test_translation():
    me, n = pg.my_pe(), pg.n_pes()
    backwards = pg.TEAM_WORLD.split_strided(n - 1, -1, n)
    odd = pg.TEAM_WORLD.split_strided(1, 2, n // 2) if n > 1 else None
    for pe in range(n):
        assert pg.TEAM_WORLD.translate_pe(pe, backwards) == n - 1 - pe
        assert backwards.translate_pe(pe, pg.TEAM_WORLD) == n - 1 - pe
        if odd is not None:
            assert pg.TEAM_WORLD.translate_pe(pe, odd) == (pe // 2 if pe % 2 else None)
    for wrong in (-1, n):
        with pytest.raises(ValueError):
            pg.TEAM_WORLD.translate_pe(wrong, backwards)
    backwards.destroy()
    if odd is not None:
        assert me % 2 == 1
        odd.destroy()


def test_a_shrinking_chain():
    me, n = pg.my_pe(), pg.n_pes()
    team = pg.TEAM_WORLD
    teams = []
    for size in range(n, 0, -1):
        team = team.split_strided(0, 1, size)
        if team is None:
            break
        assert tuple(team.pes) == tuple(range(size))
        assert pg.reduce(me, op="max", team=team) == size - 1
        teams.append(team)
    assert len(teams) == n - me
    for team in reversed(teams):
        team.destroy()


def test_overlapping_teams_take_turns():
    me, n = pg.my_pe(), pg.n_pes()
    whole = pg.TEAM_WORLD.split_strided(0, 1, n)
    rest = pg.TEAM_WORLD.split_strided(1, 1, n - 1) if n > 1 else None
    for step in range(50):
        assert pg.reduce(me + step, team=whole) == sum(range(n)) + n * step
        if rest is not None:
            assert pg.broadcast(me * 10 + step, step % (n - 1), team=rest) == (1 + step % (n - 1)) * 10 + step
            pg.barrier(rest)
        pg.sync(whole)
    if rest is not None:
        rest.destroy()
    whole.destroy()


def test_many_teams_one_after_another():
    n = pg.n_pes()
    for _ in range(150):
        with pg.TEAM_WORLD.split_strided(n - 1, -1, n) as team:
            pg.sync(team)


def test_too_many_teams():
    teams = []
    with pytest.raises(pg.ResourceLimitError):
        for _ in range(10_000):
            teams.append(pg.TEAM_WORLD.split(0))
    assert len(teams) > 10
    assert pg.reduce(1, team=teams[-1]) == pg.n_pes()
    for team in teams:
        team.destroy()
    team = pg.TEAM_WORLD.split(0)
    team.destroy()


def test_barriers_complete_puts():
    me, n = pg.my_pe(), pg.n_pes()
    to = (me + 1) % n
    team = pg.TEAM_WORLD.split_strided(0, 1, n)
    x = pg.zeros(1000, "i8")
    for step in range(30):
        pg.put_nbi(x, np.full(1000, 100 * me + step), to)
        pg.barrier(team)
        assert np.all(x.local == 100 * ((me - 1) % n) + step)
        pg.barrier(team)
    team.destroy()


def test_use_after_destroy():
    n = pg.n_pes()
    team = pg.TEAM_WORLD.split_strided(0, 1, n)
    team.destroy()
    x = pg.zeros(1, "i4")
    for call in (
        lambda: pg.sync(team),
        lambda: pg.barrier(team),
        lambda: pg.reduce(1, team=team),
        lambda: team.split_strided(0, 1, 1),
        lambda: pg.TEAM_WORLD.translate_pe(0, team),
        lambda: pg.put(x, np.zeros(1, "i4"), 0, team=team),
    ):
        with pytest.raises(pg.PgasError):
            call()
    pg.barrier_all()


def test_predefined_teams_stay():
    for team in (pg.TEAM_WORLD, pg.TEAM_SHARED, pg.TEAM_NODE):
        with pytest.raises(ValueError):
            team.destroy()
    pg.barrier_all()


def test_only_teams_are_teams():
    for wrong in (0, "world", object()):
        with pytest.raises(TypeError):
            pg.sync(wrong)
        with pytest.raises(TypeError):
            pg.my_pe(wrong)
        with pytest.raises(TypeError):
            pg.reduce(1, team=wrong)
