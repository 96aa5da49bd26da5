// SPDX-License-Identifier: Apache-2.0
#include "fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>

// Only what a called function must preserve is saved: the compiler has saved the rest before the call.
#if defined(__x86_64__)
asm(R"(
.text
.globl pypgas_switch_stack
.hidden pypgas_switch_stack
.type pypgas_switch_stack, @function
.p2align 4
pypgas_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size pypgas_switch_stack, .-pypgas_switch_stack
)");
#elif defined(__aarch64__)
asm(R"(
.text
.globl pypgas_switch_stack
.hidden pypgas_switch_stack
.type pypgas_switch_stack, %function
.p2align 4
pypgas_switch_stack:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size pypgas_switch_stack, .-pypgas_switch_stack
)");
#else
#error "the CPU device supports x86-64 and aarch64"
#endif

namespace native {
namespace cpu {

void *prepare_stack(char *top, void (*entry)()) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(entry);
#if defined(__x86_64__)
  // As after a call: the return address is 8 bytes off a 16-byte boundary; returning from entry() would go to 0.
  uintptr_t *sp = reinterpret_cast<uintptr_t *>(top) - 1;
  *sp = 0;
  *--sp = address;
  sp -= 6;
  memset(sp, 0, 6 * sizeof *sp);
  return sp;
#else
  char *sp = top - 160;
  memset(sp, 0, 160);
  memcpy(sp + 88, &address, sizeof address); // x30, where `ret` goes
  return sp;
#endif
}

bool Stacks::reserve(size_t count) {
  if (count <= count_) return true;
  const size_t each = stack_bytes + guard;
  void *at = mmap(nullptr, count * each, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return false;
  if (base_) munmap(base_, count_ * each);
  base_ = static_cast<char *>(at);
  count_ = count;
  for (size_t i = 0; i < count; i++) mprotect(base_ + i * each, guard, PROT_NONE);
  return true;
}

bool Stacks::guards(const void *address) const {
  const char *p = static_cast<const char *>(address);
  if (!base_ || p < base_ || p >= base_ + count_ * (stack_bytes + guard)) return false;
  return size_t(p - base_) % (stack_bytes + guard) < guard;
}

} // namespace cpu
} // namespace native
