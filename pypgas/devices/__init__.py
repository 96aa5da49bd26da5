# SPDX-License-Identifier: Apache-2.0
"""What a PE computes and keeps its heap on."""
