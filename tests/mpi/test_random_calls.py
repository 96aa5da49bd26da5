# SPDX-License-Identifier: Apache-2.0
"""Random sequences of calls, compared after each with a NumPy model of all PEs' memory.

Every PE runs the same sequence and keeps a model of everybody's memory. Most calls are made by one
PE, the *actor*; collectives are made by all. An operation is a name and a list of numbers from
which its details are chosen, so that any list is valid and hypothesis can shrink it.
"""

import gc
import itertools

import numpy as np
from hypothesis import strategies as st

import pypgas as pg
from pypgas.testing import given, lockstep_settings, time_limit

DTYPES = ["i4", "i8", "u4", "u8", "f4", "f8", "c16", "i2", "u1"]
ATOMIC = ["i4", "i8", "u4", "u8"]
SHAPES = [(7,), (16,), (1,), (4, 5), (2, 3, 4)]
MOST_ARRAYS = 4
FLAGS = 3


class Choices:
    """Numbers from which an operation's details are chosen; zeros when they are used up."""

    def __init__(self, numbers):
        self._numbers = iter(numbers)

    def below(self, limit):
        return next(self._numbers, 0) % limit

    def one_of(self, options):
        return options[self.below(len(options))]


class Memory:
    """The symmetric arrays, and the model of every PE's part of them."""

    def __init__(self):
        self.me, self.n = pg.my_pe(), pg.n_pes()
        self.arrays = []  # (symmetric array, [PE 0's content, PE 1's content, ...])
        self.flags = pg.zeros(FLAGS, dtype="u8")
        self.flag_model = np.zeros((self.n, FLAGS), dtype="u8")
        self.problem = None
        self.allocate(Choices([]))

    # ------------------------------------------------------------ bookkeeping
    def expect(self, what, actual, expected):
        """Remember the first difference; the PE goes on, or the others would wait for it."""
        actual, expected = np.asarray(actual), np.asarray(expected)
        if self.problem is None and not (actual.dtype == expected.dtype and np.array_equal(actual, expected)):
            self.problem = f"PE {self.me}: {what}:\ngot      {actual!r}\nexpected {expected!r}"

    def compare(self, after):
        """Compare this PE's memory with the model, while nobody changes it."""
        pg.barrier_all()
        for number, (x, model) in enumerate(self.arrays):
            self.expect(f"array {number} after {after}", x.local, model[self.me])
        self.expect(f"signals after {after}", self.flags.local, self.flag_model[self.me])
        pg.barrier_all()

    def pick(self, choices, dtypes=DTYPES):
        fitting = [pair for pair in self.arrays if pair[0].dtype in [np.dtype(d) for d in dtypes]]
        return choices.one_of(fitting) if fitting else None

    def slices(self, choices, shape):
        """An index with a slice for each dimension, of any step."""
        index = []
        for length in shape:
            start, stop = sorted([choices.below(length + 1), choices.below(length + 1)])
            step = choices.one_of([1, 2, 3, -1, -2])
            if step < 0:
                start, stop = stop - 1, (start - 1 if start > 0 else None)
                if start < 0:
                    start, stop = 0, 0
            index.append(slice(start, stop, step))
        return tuple(index)

    @staticmethod
    def values(choices, shape, dtype):
        """Small numbers, exact in every dtype."""
        first = choices.below(50)
        return ((np.arange(int(np.prod(shape))) * 3 + first) % 100).astype(dtype).reshape(shape)

    # ------------------------------------------------------------ allocation
    def allocate(self, choices):
        if len(self.arrays) >= MOST_ARRAYS:
            return
        dtype, shape = choices.one_of(DTYPES), choices.one_of(SHAPES)
        value = choices.below(100)
        x = pg.zeros(shape, dtype) if value == 0 else pg.full(shape, value, dtype)
        self.arrays.append((x, [np.full(shape, value, dtype) for _ in range(self.n)]))

    def free(self, choices):
        if len(self.arrays) > 1:
            x, _ = self.arrays.pop(choices.below(len(self.arrays)))
            x.free()

    def drop(self, choices):
        if len(self.arrays) > 1:
            self.arrays.pop(choices.below(len(self.arrays)))
            if choices.below(2) == self.me % 2:
                gc.collect()

    # ------------------------------------------------------------ one PE at work
    def local_write(self, choices):
        actor = choices.below(self.n)
        x, model = self.pick(choices)
        index = self.slices(choices, x.shape)
        new = self.values(choices, model[0][index].shape, x.dtype)
        model[actor][index] = new
        if self.me == actor:
            x.local[index] = new

    def put(self, choices):
        actor, target = choices.below(self.n), choices.below(self.n)
        how = choices.one_of(["put", "put_nbi", "at", "context"])
        x, model = self.pick(choices)
        index = self.slices(choices, x.shape)
        new = self.values(choices, model[0][index].shape, x.dtype)
        model[target][index] = new
        if self.me != actor:
            return
        if how == "at":
            x.at(target)[index] = new
        elif how == "context":
            with pg.Context() as context:
                context.put(x[index], new, target)
                context.quiet()
        else:
            getattr(pg, how)(x[index], new, target)
            pg.quiet()

    def copy_from_own(self, choices):
        """Put from one's own symmetric memory."""
        actor, target = choices.below(self.n), choices.below(self.n)
        x, model = self.pick(choices)
        if target == actor or x.shape[0] < 2:
            return
        half = x.shape[0] // 2
        model[target][:half] = model[actor][half : 2 * half]
        if self.me == actor:
            pg.put(x[:half], x[half : 2 * half], target)

    def get(self, choices):
        actor, target = choices.below(self.n), choices.below(self.n)
        how = choices.one_of(["get", "get_nbi", "at"])
        x, model = self.pick(choices)
        index = self.slices(choices, x.shape)
        if self.me != actor:
            return
        expected = model[target][index]
        if how == "at":
            found = x.at(target)[index].get()
        else:
            found = np.empty(expected.shape, x.dtype)
            getattr(pg, how)(found, x[index], target)
            pg.quiet()
        self.expect(f"{how} from PE {target}", found, expected)

    def element(self, choices):
        actor, target = choices.below(self.n), choices.below(self.n)
        x, model = self.pick(choices)
        index = tuple(choices.below(length) for length in x.shape)
        value = x.dtype.type(choices.below(100))
        if self.me == actor:
            self.expect(f"g from PE {target}", pg.g(x[index], target), model[target][index])
            pg.p(x[index], value, target)
            pg.quiet()
        model[target][index] = value

    def strided(self, choices):
        actor, target = choices.below(self.n), choices.below(self.n)
        x, model = self.pick(choices)
        if x.ndim != 1:
            return
        tst, sst = 1 + choices.below(3), 1 + choices.below(3)
        count = choices.below((x.size - 1) // max(tst, sst) + 2)
        source = self.values(choices, (x.size,), x.dtype)
        if self.me == actor:
            found = np.zeros(x.size, x.dtype)
            expected = found.copy()
            expected[: tst * count : tst] = model[target][: sst * count : sst]
            pg.iget(found, x, tst, sst, count, target)
            self.expect(f"iget from PE {target}", found, expected)
            pg.iput(x, source, tst, sst, count, target)
            pg.quiet()
        model[target][: tst * count : tst] = source[: sst * count : sst]

    def put_signal(self, choices):
        actor, target = choices.below(self.n), choices.below(self.n)
        x, model = self.pick(choices)
        index = self.slices(choices, x.shape)
        new = self.values(choices, model[0][index].shape, x.dtype)
        flag, value = choices.below(FLAGS), 1 + choices.below(1000)
        add = choices.below(2)
        if self.flag_model[target, flag] == value and not add:
            value += 1  # or the wait below would be over before the put
        if self.me == actor:
            call = choices.one_of([pg.put_signal, pg.put_signal_nbi])
            op = pg.SIGNAL_ADD if add else pg.SIGNAL_SET
            call(x[index], new, self.flags[flag], value, target, op=op)
            pg.quiet()
        model[target][index] = new
        self.flag_model[target, flag] = value + (self.flag_model[target, flag] if add else 0)
        if self.me == target:
            wanted = int(self.flag_model[target, flag])
            found = pg.signal_wait_until(self.flags[flag], pg.EQ, wanted, timeout=20)
            self.expect("signal_wait_until", found, wanted)
            self.expect("data behind the signal", x.local[index], new)

    def signal(self, choices):
        actor, target = choices.below(self.n), choices.below(self.n)
        flag, value = choices.below(FLAGS), choices.below(1000)
        if choices.below(2):
            self.flag_model[target, flag] += np.uint64(value)
            call = pg.signal_add
        else:
            self.flag_model[target, flag] = value
            call = pg.signal_set
        if self.me == actor:
            call(self.flags[flag], value, target)
            pg.quiet()

    def atomic(self, choices):
        picked = self.pick(choices, ATOMIC)
        if picked is None:
            return
        x, model = picked
        actor, target = choices.below(self.n), choices.below(self.n)
        index = tuple(choices.below(length) for length in x.shape)
        name = choices.one_of(list(UPDATES))
        value = choices.below(100)
        old = model[target][index]
        arguments = () if "inc" in name or name == "fetch" else (value,)
        if name == "compare_swap":
            condition = choices.one_of([int(old), value])
            arguments = (condition, value)
            model[target][index] = value if old == condition else old
        else:
            model[target][index] = UPDATES[name](int(old), value)
        if self.me != actor:
            return
        found = getattr(pg, f"atomic_{name}")(x, *arguments, target, index=index)
        if "fetch" in name or "swap" in name:
            self.expect(f"atomic_{name} at PE {target}", found, old)
        else:
            pg.quiet()

    def bulk(self, choices):
        picked = self.pick(choices, ATOMIC)
        if picked is None:
            return
        x, model = picked
        actor = choices.below(self.n)
        count = choices.below(20)
        numbers = np.arange(count)
        where = (numbers * (1 + choices.below(5)) + choices.below(7)) % x.size
        pes = (numbers * (1 + choices.below(3))) % self.n
        amounts = ((numbers * 3 + 1) % 50).astype(x.dtype)
        for element, pe, amount in zip(where, pes, amounts, strict=True):
            model[pe].reshape(-1)[element] += amount
        if self.me == actor:
            pg.atomic_add(x, amounts, pes, index=where)
            pg.quiet()

    # ------------------------------------------------------------ all PEs at work
    def add_together(self, choices):
        """All PEs add to the same element at the same time."""
        picked = self.pick(choices, ATOMIC)
        if picked is None:
            return
        x, model = picked
        target = choices.below(self.n)
        element = choices.below(x.size)
        model[target].reshape(-1)[element] += sum(range(1, self.n + 1))
        pg.atomic_add(x, self.me + 1, target, index=np.unravel_index(element, x.shape))

    def broadcast(self, choices):
        root = choices.below(self.n)
        x, model = self.pick(choices)
        pg.broadcast(x, root=root)
        for pe in range(self.n):
            model[pe][...] = model[root]

    def reduce(self, choices):
        picked = self.pick(choices, [*ATOMIC, "f8"])
        if picked is None:
            return
        x, model = picked
        name, function = choices.one_of([("sum", np.sum), ("min", np.min), ("max", np.max)])
        expected = function(np.array(model), axis=0).astype(x.dtype)
        self.expect(f"reduce {name}", pg.reduce(x, op=name), expected)

    def scan(self, choices):
        picked = self.pick(choices, [*ATOMIC, "f8"])
        if picked is None:
            return
        x, model = picked
        parts = np.array(model)
        total = parts[: self.me + 1].sum(axis=0).astype(x.dtype)
        self.expect("inclusive scan", pg.inclusive_scan(x, op="sum"), total)
        before = parts[: self.me].sum(axis=0).astype(x.dtype)
        self.expect("exclusive scan", pg.exclusive_scan(x, op="sum"), before)

    def gather(self, choices):
        x, model = self.pick(choices)
        parts = [part.reshape(-1)[: (pe + 1) % (part.size + 1)] for pe, part in enumerate(model)]
        self.expect("collect", pg.collect(parts[self.me].copy()), np.concatenate(parts))
        self.expect("fcollect", np.ravel(pg.fcollect(x)), np.ravel(np.array(model)))
        root = choices.below(self.n)
        gathered = pg.gather(x, root=root)
        if self.me == root:
            self.expect("gather", np.ravel(gathered), np.ravel(np.array(model)))

    def alltoall(self, choices):
        length = 1 + choices.below(4)
        table = self.values(choices, (self.n, self.n, length), choices.one_of(DTYPES))
        found = pg.alltoall(table[self.me].copy())
        self.expect("alltoall", np.ravel(found), np.ravel(table[:, self.me]))

    def team(self, choices):
        start, stride = choices.below(self.n), 1 + choices.below(2)
        size = 1 + choices.below((self.n - 1 - start) // stride + 1)
        members = [start + stride * i for i in range(size)]
        x, model = self.pick(choices)
        root = choices.below(size)
        team = pg.TEAM_WORLD.split_strided(start, stride, size)
        self.expect("membership", team is not None, self.me in members)
        if team is not None:
            self.expect("team numbers", team.pes, members)
            pg.broadcast(x, root=root, team=team)
            self.expect("broadcast in the team", x.local, model[members[root]])
            pg.sync(team)  # the next line overwrites it
            count = pg.reduce(np.int64(1), op="sum", team=team)
            self.expect("reduce in the team", count, np.int64(size))
            pg.put(x, self.values(Choices([root]), x.shape, x.dtype), (team.my_pe + 1) % size, team=team)
            pg.barrier(team)
            team.destroy()
        for pe in members:
            model[pe][...] = self.values(Choices([root]), x.shape, x.dtype)


UPDATES = {
    "set": lambda old, value: value,
    "fetch": lambda old, value: old,
    "swap": lambda old, value: value,
    "compare_swap": None,  # depends on more than these
    "add": lambda old, value: old + value,
    "fetch_add": lambda old, value: old + value,
    "inc": lambda old, value: old + 1,
    "fetch_inc": lambda old, value: old + 1,
    "and": lambda old, value: old & value,
    "or": lambda old, value: old | value,
    "xor": lambda old, value: old ^ value,
    "fetch_and": lambda old, value: old & value,
    "fetch_or": lambda old, value: old | value,
    "fetch_xor": lambda old, value: old ^ value,
}

OPERATIONS = {
    name: function
    for name, function in vars(Memory).items()
    if name not in ("expect", "compare", "pick", "slices", "values") and not name.startswith("_")
}

operation = st.tuples(
    st.sampled_from(sorted(OPERATIONS)), st.lists(st.integers(0, 999), min_size=8, max_size=12)
)
# Lists of lists, because hypothesis makes lists of five elements on average.
sequences = st.lists(st.lists(operation, max_size=16), max_size=16).map(
    lambda parts: list(itertools.chain(*parts))
)


@time_limit(180)
@given(sequence=sequences, settings=lockstep_settings(max_examples=60))
def test_random_calls(sequence):
    memory = Memory()
    for step, (name, chosen) in enumerate(sequence):
        try:
            OPERATIONS[name](memory, Choices(chosen))
        except (pg.PgasError, ArithmeticError, AttributeError, TypeError, ValueError) as error:
            if isinstance(error, (pg.PeerFailedError, pg.WaitTimeoutError)):
                raise
            memory.problem = memory.problem or f"PE {memory.me}: step {step}, {name}: {error!r}"
        memory.compare(f"step {step}, {name}")
    while memory.arrays:
        memory.arrays.pop()[0].free()
    memory.flags.free()
    assert memory.problem is None, memory.problem
