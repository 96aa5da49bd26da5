// SPDX-License-Identifier: Apache-2.0
// Atomic operations on an element of another PE. NVSHMEM declares some of the integers' adds and increments for the
// host alone; here every operation has all types of its group.
#pragma once

#include "types.h"

// update: name(target, value, pe); fetching: the same with a result; plain ones take no value.
#define NVSHMEM_PGAS_UPDATE(prefix, name, type, op)                                                                   \
  NVSHMEM_PGAS_FN(pgas::thread) void prefix##_##name##_atomic_##op(type *target, type value, int pe) {                \
    pgas::atomic_##op(nvshmem_detail::element<S>(target), nvshmem_detail::value<type>(value), pe);                    \
  }
#define NVSHMEM_PGAS_FETCHING(prefix, name, type, op)                                                                 \
  NVSHMEM_PGAS_FN(pgas::thread) type prefix##_##name##_atomic_##op(type *target, type value, int pe) {                \
    return nvshmem_detail::same_bits<type>(                                                                           \
        pgas::atomic_##op(nvshmem_detail::element<S>(target), nvshmem_detail::value<type>(value), pe));               \
  }

// fetch, set and swap: words of any kind.
#define NVSHMEM_PGAS_EXTENDED(name, type, ...)                                                                        \
  NVSHMEM_PGAS_FN(pgas::thread) type nvshmem_##name##_atomic_fetch(const type *target, int pe) {                      \
    return nvshmem_detail::same_bits<type>(pgas::atomic_fetch(nvshmem_detail::element<S>(target), pe));               \
  }                                                                                                                   \
  NVSHMEM_PGAS_UPDATE(nvshmem, name, type, set)                                                                       \
  NVSHMEM_PGAS_FETCHING(nvshmem, name, type, swap)
NVSHMEM_PGAS_WORD_TYPES(NVSHMEM_PGAS_EXTENDED, )
NVSHMEM_PGAS_EXTENDED(half, __half)
NVSHMEM_PGAS_EXTENDED(float, float)
NVSHMEM_PGAS_EXTENDED(double, double)

// Integers add, count and compare.
#define NVSHMEM_PGAS_STANDARD(name, type, ...)                                                                        \
  NVSHMEM_PGAS_UPDATE(nvshmem, name, type, add)                                                                       \
  NVSHMEM_PGAS_FETCHING(nvshmem, name, type, fetch_add)                                                               \
  NVSHMEM_PGAS_FN(pgas::thread) void nvshmem_##name##_atomic_inc(type *target, int pe) {                              \
    pgas::atomic_inc(nvshmem_detail::element<S>(target), pe);                                                         \
  }                                                                                                                   \
  NVSHMEM_PGAS_FN(pgas::thread) type nvshmem_##name##_atomic_fetch_inc(type *target, int pe) {                        \
    return pgas::atomic_fetch_inc(nvshmem_detail::element<S>(target), pe);                                            \
  }                                                                                                                   \
  NVSHMEM_PGAS_FN(pgas::thread) type nvshmem_##name##_atomic_compare_swap(type *target, type compare, type value,     \
                                                                          int pe) {                                   \
    return pgas::atomic_compare_swap(nvshmem_detail::element<S>(target), compare, value, pe);                         \
  }
NVSHMEM_PGAS_WORD_TYPES(NVSHMEM_PGAS_STANDARD, )

// Floating-point sums are NVSHMEM's extension.
#define NVSHMEM_PGAS_SUM(name, type)                                                                                  \
  NVSHMEM_PGAS_UPDATE(nvshmemx, name, type, add)                                                                      \
  NVSHMEM_PGAS_FETCHING(nvshmemx, name, type, fetch_add)
NVSHMEM_PGAS_SUM(half, __half)
NVSHMEM_PGAS_SUM(float, float)
NVSHMEM_PGAS_SUM(double, double)

#define NVSHMEM_PGAS_BITWISE(name, type, ...)                                                                         \
  NVSHMEM_PGAS_UPDATE(nvshmem, name, type, and)                                                                       \
  NVSHMEM_PGAS_UPDATE(nvshmem, name, type, or)                                                                        \
  NVSHMEM_PGAS_UPDATE(nvshmem, name, type, xor)                                                                       \
  NVSHMEM_PGAS_FETCHING(nvshmem, name, type, fetch_and)                                                               \
  NVSHMEM_PGAS_FETCHING(nvshmem, name, type, fetch_or)                                                                \
  NVSHMEM_PGAS_FETCHING(nvshmem, name, type, fetch_xor)
NVSHMEM_PGAS_BITWISE_AMO_TYPES(NVSHMEM_PGAS_BITWISE, )

#undef NVSHMEM_PGAS_BITWISE
#undef NVSHMEM_PGAS_SUM
#undef NVSHMEM_PGAS_STANDARD
#undef NVSHMEM_PGAS_EXTENDED
#undef NVSHMEM_PGAS_FETCHING
#undef NVSHMEM_PGAS_UPDATE
