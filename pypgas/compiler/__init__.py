# SPDX-License-Identifier: Apache-2.0
"""Compiling users' kernels: the host compiler and NVRTC, their cache on disk, and what C++ types mean in Python."""
