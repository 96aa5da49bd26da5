# SPDX-License-Identifier: Apache-2.0
"""The ``pypgas`` command: starts SPMD programs and says what went wrong when one fails."""
