# SPDX-License-Identifier: Apache-2.0
"""Bringing the PEs of a job together: through MPI, or alone.

Importing this package imports neither mpi4py nor an MPI library.
"""

from .base import Bootstrap
from .descriptors import NodeSockets
from .select import choose
from .single import SingleBootstrap

__all__ = ["Bootstrap", "NodeSockets", "SingleBootstrap", "choose"]
