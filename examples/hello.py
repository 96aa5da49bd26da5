#!/usr/bin/env python
# SPDX-License-Identifier: Apache-2.0
"""Hello from every PE: a greeting goes around a ring.

pypgas run -n 4 examples/hello.py

Each PE writes its number into the memory of its right-hand neighbour and raises a signal there. Who
has seen the signal has the data: no barrier is needed between them.
"""

from __future__ import annotations

import os
import sys

import numpy as np

import pypgas as pg


def main() -> int:
    with pg.init():
        me, n = pg.my_pe(), pg.n_pes()
        left, right = (me - 1) % n, (me + 1) % n

        greeting = pg.zeros(2, dtype="i8")  # one such array on every PE, at the same place
        signal = pg.zeros((), dtype="u8")
        mine = np.array([me, os.getpid()])
        pg.put_signal(greeting, mine, signal, 1, right)
        pg.signal_wait_until(signal, pg.GE, 1)

        sender, process = greeting.local
        good = bool(pg.reduce(int(sender == left), op="min"))
        processes = pg.fcollect(np.array([process]))
        if me == 0:
            print(
                f"hello: {n} PEs greeted each other around a ring, processes "
                f"{', '.join(map(str, processes))}: {'correct' if good else 'WRONG'}"
            )
        return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
