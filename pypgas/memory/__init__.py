# SPDX-License-Identifier: Apache-2.0
"""The symmetric heap: offsets, blocks and the arrays over them."""
