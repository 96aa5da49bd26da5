// SPDX-License-Identifier: Apache-2.0
// What a bulk atomic_add does, written by hand: the yardstick of bulk_atomics.py.
#include <stdint.h>

void add(int64_t *const *tables, const int64_t *pes, const int64_t *indices, const int64_t *values, int64_t n) {
  for (int64_t i = 0; i < n; i++) __atomic_fetch_add(&tables[pes[i]][indices[i]], values[i], __ATOMIC_RELAXED);
}
