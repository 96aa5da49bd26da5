// SPDX-License-Identifier: Apache-2.0
// Fibers: stacks, and a switch between them that costs a few nanoseconds. A fiber never leaves its thread.
#pragma once

#include <cstddef>

namespace native {
namespace cpu {

constexpr size_t stack_bytes = 256 << 10; // of which only pages that are used exist

// Saves the running context's stack pointer in *from and continues at `to`.
extern "C" void pypgas_switch_stack(void **from, void *to);

// Prepares a stack so that switching to the result calls entry(), which must not return.
void *prepare_stack(char *top, void (*entry)());

// The stacks of one worker, kept for its next block. Each has a guard page below it.
class Stacks {
public:
  // Top of stack i; false if there is no memory for it.
  bool reserve(size_t count);
  char *top(size_t i) const { return base_ + (i + 1) * (stack_bytes + guard); }
  char *bottom(size_t i) const { return top(i) - stack_bytes; }
  bool guards(const void *address) const; // whether the address is in a guard page: a stack has overflowed

private:
  static constexpr size_t guard = 4096;
  char *base_ = nullptr;
  size_t count_ = 0;
};

} // namespace cpu
} // namespace native
