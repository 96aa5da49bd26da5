// SPDX-License-Identifier: Apache-2.0
// Host entry points of comparisons and waits, in the variable's own type.
#pragma once

#include "dispatch.cuh"

namespace pgas {
namespace entry {

template <class T> constexpr bool waitable() {
  return is_integral<T>::value || is_same<T, float>::value || is_same<T, double>::value;
}

namespace detail {
template <class F> PGAS_FN bool with_waitable(DType type, F f) {
  return with_type(type, [&](auto of) {
    typedef typename decltype(of)::type T;
    if constexpr (is_same<T, bool8>::value) return f(Of<uint8_t>{});
    else if constexpr (waitable<T>()) return f(of);
    else return false;
  });
}
} // namespace detail

PGAS_FN bool can_wait(DType type) {
  return detail::with_waitable(type, [](auto) { return true; });
}

PGAS_FN bool test(DType type, const void *variable, Compare c, const void *value, void *seen) {
  return detail::with_waitable(type, [&](auto of) {
    typedef typename decltype(of)::type T;
    T v, now;
    memcpy(&v, value, sizeof v);
    const bool result = raw::test(static_cast<const T *>(variable), c, v, &now);
    if (seen) memcpy(seen, &now, sizeof now);
    return result;
  });
}

template <class W>
PGAS_FN bool wait_until(DType type, const void *variable, Compare c, const void *value, void *seen, W &wait) {
  return detail::with_waitable(type, [&](auto of) {
    typedef typename decltype(of)::type T;
    T v, now;
    memcpy(&v, value, sizeof v);
    const bool result = raw::wait_until(static_cast<const T *>(variable), c, v, &now, wait);
    if (seen) memcpy(seen, &now, sizeof now);
    return result;
  });
}

} // namespace entry
} // namespace pgas
