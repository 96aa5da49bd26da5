# SPDX-License-Identifier: Apache-2.0
"""pypgas.shmem: teams and contexts."""

import numpy as np
import pytest

from pypgas import shmem


def test_handles_are_names():
    for kind, named in [
        (shmem.Team, [shmem.TEAM_WORLD, shmem.TEAM_SHARED, shmem.TEAM_INVALID]),
        (shmem.Ctx, [shmem.CTX_DEFAULT, shmem.CTX_INVALID]),
    ]:
        assert kind() == named[-1]
        assert kind(None) == named[-1]
        assert not kind()
        for i, one in enumerate(named):
            assert bool(one) == (i < len(named) - 1)
            for j, other in enumerate(named):
                assert (one == other) == (i == j)
                assert (one == kind(other)) == (i == j)
                assert (one != other) == (i != j)
            assert one != 0
            with one as same:
                assert same is one
            assert bool(one) == (i < len(named) - 1)  # predefined ones are not destroyed
            alias = kind(one)
            assert alias is not one
            alias.destroy()
            assert not alias
        with pytest.raises(TypeError):
            kind(123)


def test_world():
    me, n = shmem.my_pe(), shmem.n_pes()
    world = shmem.TEAM_WORLD
    assert (world.my_pe(), world.n_pes()) == (me, n)
    assert world.translate_pe() == me
    assert [world.translate_pe(pe, world) for pe in range(n)] == list(range(n))
    assert world.get_config() == {"num_contexts": 0}
    world.sync()
    shmem.sync(world)
    shmem.sync()


def test_every_split_of_the_world():
    me, n = shmem.my_pe(), shmem.n_pes()
    for start in range(n):
        for stride in (*range(-n, 0), *range(1, n + 1)):
            members = list(range(start, n if stride > 0 else -1, stride))
            for size in range(1, len(members) + 1):
                with shmem.TEAM_WORLD.split_strided(start, stride, size) as team:
                    inside = me in members[:size]
                    assert bool(team) == inside
                    if inside:
                        assert team.n_pes() == size
                        assert team.my_pe() == members.index(me)
                        assert [team.translate_pe(i) for i in range(size)] == members[:size]
                assert not team


def test_split_takes_all_there_are():
    me, n = shmem.my_pe(), shmem.n_pes()
    even = shmem.TEAM_WORLD.split_strided(0, 2, num_contexts=2)
    assert bool(even) == (me % 2 == 0)
    if even:
        assert even.n_pes() == (n + 1) // 2
        assert even.get_config() == {"num_contexts": 2}
        assert shmem.Team(even).get_config() == {"num_contexts": 2}
    even.destroy()
    even.destroy()
    whole = shmem.TEAM_WORLD.split_strided(config={"num_contexts": 1})
    assert whole.n_pes() == n
    whole.destroy()


def test_invalid_splits_fail_everywhere():
    n = shmem.n_pes()
    for start, stride, size in [(0, 1, n + 1), (n, 1, 1), (-1, 1, 1), (0, 0, 2), (0, -1, 2)]:
        with pytest.raises(ValueError):
            shmem.TEAM_WORLD.split_strided(start, stride, size)
    with pytest.raises(ValueError):
        shmem.TEAM_WORLD.split_strided(colour=1)
    shmem.barrier_all()


def test_an_invalid_team_is_a_runtime_error():
    gone = shmem.TEAM_WORLD.split_strided()
    gone.destroy()
    for team in (shmem.TEAM_INVALID, gone):
        for call in (
            team.my_pe,
            team.n_pes,
            team.sync,
            team.split_strided,
            team.get_config,
            team.translate_pe,
            team.create_ctx,
        ):
            with pytest.raises(RuntimeError):
                call()
    with pytest.raises(RuntimeError):
        shmem.CTX_INVALID.get_team()
    with pytest.raises(TypeError):
        shmem.sync(3)


def test_translation_to_a_team_one_is_not_in():
    n = shmem.n_pes()
    last = shmem.TEAM_WORLD.split_strided(n - 1, 1, 1)
    if last:
        assert shmem.TEAM_WORLD.translate_pe(n - 1, last) == 0
        if n > 1:
            with pytest.raises(RuntimeError):
                shmem.TEAM_WORLD.translate_pe(0, last)
    last.destroy()


def test_context_operations():
    me, n = shmem.my_pe(), shmem.n_pes()
    to = (me + 1) % n
    a = shmem.zeros(4, "i4")
    for options in (0, shmem.CTX_PRIVATE, shmem.CTX_SERIALIZED | shmem.CTX_NOSTORE):
        with shmem.Ctx.create(options) as ctx:
            assert ctx not in (shmem.CTX_DEFAULT, shmem.CTX_INVALID)
            assert ctx.get_team() == shmem.TEAM_WORLD
            shmem.put(a, np.full(4, me, "i4"), to, ctx=ctx)
            ctx.fence()
            shmem.atomic_add(a[3:], 1, to, ctx=ctx)
            ctx.quiet()
            shmem.fence(ctx)
            shmem.quiet(ctx)
            got = np.zeros(4, "i4")
            shmem.get_nbi(got, a, to, ctx=ctx)
            ctx.quiet()
            assert list(got) == [me, me, me, me + 1]
            shmem.barrier_all()
        assert ctx == shmem.CTX_INVALID
        with pytest.raises(RuntimeError):
            shmem.put(a, a.copy(), to, ctx=ctx)
    with pytest.raises(ValueError):
        shmem.Ctx.create(64)
    shmem.fence(shmem.CTX_INVALID)  # harmless
    shmem.quiet(shmem.CTX_INVALID)


def test_pes_count_in_the_contexts_team():
    me, n = shmem.my_pe(), shmem.n_pes()
    a = shmem.full(1, -1, "i4")
    backwards = shmem.TEAM_WORLD.split_strided(n - 1, -1, n)
    with backwards.create_ctx() as ctx:
        assert ctx.get_team() == backwards
        assert ctx.get_team().my_pe() == n - 1 - me
        shmem.put(a, np.array([me], "i4"), me, ctx=ctx)  # to world PE n - 1 - me
        ctx.quiet()
    shmem.barrier_all()
    assert a[0] == n - 1 - me
    backwards.destroy()
