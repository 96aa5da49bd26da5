# SPDX-License-Identifier: Apache-2.0
"""``python -m pypgas``: the same as the ``pypgas`` command."""

import sys

from pypgas.launcher.main import main

if __name__ == "__main__":
    sys.exit(main())
