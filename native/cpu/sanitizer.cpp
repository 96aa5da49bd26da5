// SPDX-License-Identifier: Apache-2.0
#include "sanitizer.h"

#include <dlfcn.h>

namespace native {
namespace cpu {

void (*sanitizer_start)(void **, const void *, size_t) = nullptr;
void (*sanitizer_finish)(void *, const void **, size_t *) = nullptr;

void find_sanitizer() {
  sanitizer_start = reinterpret_cast<decltype(sanitizer_start)>(dlsym(RTLD_DEFAULT, "__sanitizer_start_switch_fiber"));
  sanitizer_finish = reinterpret_cast<decltype(sanitizer_finish)>(dlsym(RTLD_DEFAULT, "__sanitizer_finish_switch_fiber"));
}

} // namespace cpu
} // namespace native
