// SPDX-License-Identifier: Apache-2.0
// What a kernel module compiled for the CPU and the runtime that executes it know of each other.
#pragma once

#include "../scopes.cuh"

namespace pgas {

struct State;

namespace cpu {

constexpr unsigned abi_version = 1;

struct Dim3 { unsigned x, y, z; };

struct Launch {
  Dim3 grid, block;
  unsigned threads; // of a block
};

// One thread of a kernel, as it sees itself.
struct Thread {
  Dim3 thread_idx, block_idx;
  unsigned rank, lane; // linear number in the block and in the warp
  unsigned block_number;
  const Launch *launch;
  char *shared; // the block's dynamic shared memory
};

enum class Warp : int { shuffle, ballot, match, add, min, max, and_, or_, xor_ };

// A warp operation: every lane of the mask brings a value and gets a result.
struct WarpCall {
  Warp kind;
  unsigned mask;
  int source;   // shuffle: the lane to read
  int is_signed;
  unsigned long long value, result;
};

struct Api {
  unsigned version;
  bool (*idle)(WaitFacts *);       // let others run; false: the kernel must end
  void (*yield)();
  void (*sync_block)();
  int (*vote_block)(int predicate); // __syncthreads with a count of predicates
  void (*sync_warp)(unsigned mask);
  void (*warp)(WarpCall *);
  unsigned (*active_mask)();
  void (*sync_grid)();
  void (*fail)(const char *kind, const char *text, const char *file, int line); // does not return
  void (*leave)();                                                              // does not return
};

struct ModuleTable {
  unsigned version;
  int count;
  const char *const *types;       // mangled types of the kernels' addresses
  void (*const *calls)(void **);  // call a kernel with arguments by address
  Thread **(*self)();             // where this operating-system thread keeps `self`
  void (*bind)(const State *, const Api *);
};

#ifdef PGAS_CPU_MODE
static thread_local Thread *self;
static const Api *api;
static const State *module_state;
inline void bind_state(const State *state) { module_state = state; }
#endif

} // namespace cpu
} // namespace pgas
