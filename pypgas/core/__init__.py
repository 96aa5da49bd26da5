# SPDX-License-Identifier: Apache-2.0
"""The live runtime, and what stands between callers and the native layer."""
