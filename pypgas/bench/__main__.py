# SPDX-License-Identifier: Apache-2.0
"""``python -m pypgas.bench``: the same as ``pypgas bench``."""

import sys

from pypgas.bench.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
