# SPDX-License-Identifier: Apache-2.0
"""How the memory of another PE is reached."""
