# SPDX-License-Identifier: Apache-2.0
"""The operations of the public API, by group."""
