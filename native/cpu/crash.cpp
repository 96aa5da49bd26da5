// SPDX-License-Identifier: Apache-2.0
// A fault inside a kernel becomes the kernel's failure: the handler sends the fiber to where its block is given up.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ucontext.h>

#include "pool.h"

namespace native {
namespace cpu {

void *abandon_address();

namespace {

const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
struct sigaction previous[64];

const char *describe(int signal, const siginfo_t *info, const Block &block, char *text, size_t size) {
  const void *address = info->si_addr;
  switch (signal) {
  case SIGSEGV:
    if (block.stacks().guards(address)) return "stack overflow: a thread of a kernel has 256 KiB of stack";
    snprintf(text, size, "bad access to address %p (segmentation fault)", address);
    return text;
  case SIGBUS: snprintf(text, size, "bad access to address %p (bus error: misaligned, or no memory left)", address); return text;
  case SIGFPE: return "arithmetic fault: integer division by zero or overflow";
  case SIGILL: return "illegal instruction: __builtin_trap() or a call through a bad pointer";
  case SIGTRAP: return "breakpoint trap";
  default: return "stopped from outside";
  }
}

void handler(int signal, siginfo_t *info, void *context) {
  Block *block = Block::current();
  const bool interrupted = signal == SIGRTMIN + interrupt_signal_offset;
  if (!block || !block->running()) {
    if (interrupted) return; // the kernel had ended in the meantime
    // Not a kernel's: whatever would have happened without us.
    sigaction(signal, &previous[signal], nullptr);
    if (info->si_code <= 0) raise(signal);
    return;
  }
  char text[128];
  const char *what = describe(signal, info, *block, text, sizeof text);
  if (!interrupted) block->crashed("memory", what);
  // Returning from the handler continues the fiber in leave(), on its own stack from the top: what was there is lost.
  ucontext_t *uc = static_cast<ucontext_t *>(context);
  const uintptr_t top = reinterpret_cast<uintptr_t>(block->stacks().top(block->running()->self.rank));
#if defined(__x86_64__)
  uc->uc_mcontext.gregs[REG_RIP] = greg_t(reinterpret_cast<uintptr_t>(abandon_address()));
  uc->uc_mcontext.gregs[REG_RSP] = greg_t(top - 8);
#else
  uc->uc_mcontext.pc = reinterpret_cast<uintptr_t>(abandon_address());
  uc->uc_mcontext.sp = top;
#endif
}

} // namespace

void install_crash_handlers() {
  struct sigaction action = {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (int signal : faults) sigaction(signal, &action, &previous[signal]);
  sigaction(SIGRTMIN + interrupt_signal_offset, &action, nullptr);
}

void protect_worker() {
  constexpr size_t size = 64 << 10;
  stack_t stack = {};
  stack.ss_sp = malloc(size);
  stack.ss_size = size;
  sigaltstack(&stack, nullptr);
  sigset_t set;
  sigfillset(&set);
  for (int signal : faults) sigdelset(&set, signal);
  sigdelset(&set, SIGRTMIN + interrupt_signal_offset);
  pthread_sigmask(SIG_SETMASK, &set, nullptr);
}

} // namespace cpu
} // namespace native
