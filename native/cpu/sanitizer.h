// SPDX-License-Identifier: Apache-2.0
// AddressSanitizer has to be told of stack switches. It is there only where the process runs under it.
#pragma once

#include <cstddef>

namespace native {
namespace cpu {

extern void (*sanitizer_start)(void **save, const void *bottom, size_t size);
extern void (*sanitizer_finish)(void *saved, const void **bottom, size_t *size);
void find_sanitizer();

// `token` is where the leaving context's shadow state is kept; null when it will never be resumed.
inline void start_switch(void **, const void *bottom, size_t size) {
  if (__builtin_expect(sanitizer_start != nullptr, 0)) {
    void *token = nullptr;
    sanitizer_start(&token, bottom, size);
  }
}
inline void finish_switch(void *) {
  if (__builtin_expect(sanitizer_finish != nullptr, 0)) sanitizer_finish(nullptr, nullptr, nullptr);
}

} // namespace cpu
} // namespace native
