// SPDX-License-Identifier: Apache-2.0
// What NVSHMEM has and pypgas has not: using a name of this list is a compile error that says so.
#pragma once

#include "types.h"

namespace nvshmem_detail {
template <class...> struct Never { static constexpr bool value = false; };
// Stands for the result, so that the only error is the one that is meant.
struct Nothing {
  template <class T> PGAS_FN operator T() const;
};
} // namespace nvshmem_detail

#define NVSHMEM_PGAS_LEFT_OUT(name, why)                                                                              \
  template <class... A> PGAS_FN nvshmem_detail::Nothing name(A &&...) {                                               \
    static_assert(nvshmem_detail::Never<A...>::value, "pypgas has no " #name ": " why);                               \
    return {};                                                                                                        \
  }
