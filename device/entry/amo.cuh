// SPDX-License-Identifier: Apache-2.0
// Host entry points of the atomic operations: one element, or many in one call.
#pragma once

#include "dispatch.cuh"

namespace pgas {
namespace entry {

namespace detail {
// Bits of a bool are those of its byte; xor, and, or of 0 and 1 stay 0 or 1.
template <class T> struct Bits { typedef T type; };
template <> struct Bits<bool8> { typedef uint8_t type; };

template <class T, Amo op> PGAS_FN T amo(void *p, const void *value, const void *condition) {
  typedef typename Bits<T>::type B;
  T *t = static_cast<T *>(p);
  T v;
  if constexpr (op != Amo::fetch) memcpy(&v, value, sizeof v);
  if constexpr (op == Amo::fetch) return raw::atomic_fetch(t);
  else if constexpr (op == Amo::set) { raw::atomic_set(t, v); return v; }
  else if constexpr (op == Amo::swap) return raw::atomic_swap(t, v);
  else if constexpr (op == Amo::compare_swap) {
    T c;
    memcpy(&c, condition, sizeof c);
    return raw::atomic_compare_swap(t, c, v);
  } else if constexpr (op == Amo::add) return raw::atomic_fetch_add(t, v);
  else {
    B *b = reinterpret_cast<B *>(t), bits, old;
    memcpy(&bits, &v, sizeof bits);
    if constexpr (op == Amo::and_) old = raw::atomic_fetch_and(b, bits);
    else if constexpr (op == Amo::or_) old = raw::atomic_fetch_or(b, bits);
    else old = raw::atomic_fetch_xor(b, bits);
    T result;
    memcpy(&result, &old, sizeof result);
    return result;
  }
}

template <class F, class T> PGAS_FN bool with_amo(Amo op, F f, Of<T>) {
  switch (op) {
#define PGAS_AMO_CASE(name)                                                                                           \
  case Amo::name:                                                                                                     \
    if constexpr (raw::atomic_supported<T, Amo::name>()) {                                                                 \
      f(Of<T>{}, constant<Amo, Amo::name>{});                                                           \
      return true;                                                                                                    \
    } else return false;
    PGAS_AMO_CASE(fetch)
    PGAS_AMO_CASE(set)
    PGAS_AMO_CASE(swap)
    PGAS_AMO_CASE(compare_swap)
    PGAS_AMO_CASE(add)
    PGAS_AMO_CASE(and_)
    PGAS_AMO_CASE(or_)
    PGAS_AMO_CASE(xor_)
#undef PGAS_AMO_CASE
  default: return false;
  }
}
} // namespace detail

// False, with nothing done, where the operation has no meaning for the type. `result` may be null.
PGAS_FN bool amo(DType type, Amo op, void *p, const void *value, const void *condition, void *result) {
  return with_type(type, [&](auto of) {
    return detail::with_amo(op, [&](auto t, auto o) {
      typedef typename decltype(t)::type T;
      const T old = detail::amo<T, decltype(o)::value>(p, value, condition);
      if (result) memcpy(result, &old, sizeof old);
    }, of);
  });
}

PGAS_FN bool amo_supported(DType type, Amo op) {
  return with_type(type, [&](auto of) { return detail::with_amo(op, [](auto, auto) {}, of); });
}

// Many elements: element `index[i]` of the target as PE `pes[i]` has it. A step of 0 repeats one value or PE.
struct BulkAmo {
  u64 count;
  u64 target;            // heap offset of element 0
  i64 stride;            // bytes between elements
  const i64 *index;
  const i64 *pes;        // world numbers
  i64 pe_step;           // 1, or 0 for one PE
  const char *values, *conditions;
  i64 value_step, condition_step; // bytes
  char *results;         // null, or count elements
};

namespace detail {
// Everything is in locals: an atomic update may change any memory, so members would be loaded anew for each element.
template <class T, Amo op, bool results> PGAS_FN void amo_elements(const State &s, const BulkAmo &b) {
  char *const *const heaps = s.heaps;
  const u64 count = b.count, target = b.target;
  const i64 *index = b.index, *pes = b.pes;
  const i64 stride = b.stride, pe_step = b.pe_step, value_step = b.value_step, condition_step = b.condition_step;
  const char *value = b.values, *condition = b.conditions;
  char *result = b.results;
  // Random elements miss every cache: naming them some steps ahead overlaps the misses.
  constexpr u64 ahead = 24;
  for (u64 i = 0; i < count; i++) {
    if (i + ahead < count) arch::prefetch_for_write(heaps[pes[i64(ahead) * pe_step]] + target + index[ahead] * stride);
    const T old = amo<T, op>(heaps[*pes] + target + *index * stride, value, condition);
    if constexpr (results) {
      memcpy(result, &old, sizeof old);
      result += sizeof old;
    }
    index++;
    pes += pe_step;
    value += value_step;
    condition += condition_step;
  }
}
} // namespace detail

PGAS_FN bool amo_bulk(const State &s, DType type, Amo op, const BulkAmo &b) {
  return with_type(type, [&](auto of) {
    return detail::with_amo(op, [&](auto t, auto o) {
      typedef typename decltype(t)::type T;
      if (b.results) detail::amo_elements<T, decltype(o)::value, true>(s, b);
      else detail::amo_elements<T, decltype(o)::value, false>(s, b);
    }, of);
  });
}

} // namespace entry
} // namespace pgas
