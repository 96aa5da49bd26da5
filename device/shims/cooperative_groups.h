// SPDX-License-Identifier: Apache-2.0
// Cooperative groups, for GPUs and for the CPU device alike: the grid, the block, and tiles of a warp. CUDA's own header
// takes seconds to compile, and needs a GPU. A wait for the grid ends when the runtime says that it must.
#pragma once

#include <pypgas/arch.cuh>
#include <pypgas/state.cuh>

namespace cooperative_groups {

namespace detail {

PGAS_FN unsigned long long volume(dim3 d) { return (unsigned long long)d.x * d.y * d.z; }
PGAS_FN unsigned thread_in_block() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
PGAS_FN unsigned long long block_in_grid() {
  return blockIdx.x + (unsigned long long)gridDim.x * (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z);
}

// `size` lanes from `first` on, of those that the last warp of the block has.
PGAS_FN unsigned lanes(unsigned first, unsigned size) {
  const unsigned left = unsigned(volume(blockDim)) - (thread_in_block() & ~31u);
  return (~0u >> (32 - size) << first) & (left < 32 ? (1u << left) - 1 : ~0u);
}

#if defined(__CUDACC_RTC__) || defined(__CUDACC__)
// The word that the driver gives every cooperative launch. Blocks add one to it; the first block adds what is missing
// to 2^31, so that the top bit flips when all have come and the rest is zero again.
PGAS_FN unsigned *grid_word() {
  unsigned high, low;
  asm("mov.u32 %0, %%envreg1;" : "=r"(high));
  asm("mov.u32 %0, %%envreg2;" : "=r"(low));
  const unsigned long long address = (unsigned long long)high << 32 | low;
  return address ? reinterpret_cast<unsigned *>(address) + 1 : nullptr;
}
PGAS_FN void sync_grid() {
  __syncthreads();
  if (thread_in_block() == 0) {
    const unsigned blocks = unsigned(volume(gridDim));
    unsigned *word = grid_word();
    const unsigned mine = block_in_grid() == 0 ? 0x80000000u - (blocks - 1) : 1u;
    const unsigned before = pgas::arch::fetch_add(word, mine);
    pgas::WaitFacts facts = {"grid synchronisation", word, before, before, int(pgas::Compare::ne), 4, -1, 0};
    pgas::arch::Idle idle;
    while (((pgas::arch::load_acquire(word) ^ before) & 0x80000000u) == 0)
      if (!idle(facts)) pgas::arch::leave();
  }
  __syncthreads();
}
PGAS_FN bool grid_can_sync() { return grid_word() != nullptr; }
#else
PGAS_FN void sync_grid() { pgas::cpu::api->sync_grid(); }
PGAS_FN bool grid_can_sync() { return true; }
#endif

} // namespace detail

class grid_group {
public:
  PGAS_FN void sync() const { detail::sync_grid(); }
  PGAS_FN bool is_valid() const { return detail::grid_can_sync(); }
  PGAS_FN unsigned long long size() const { return num_threads(); }
  PGAS_FN unsigned long long num_threads() const { return num_blocks() * detail::volume(blockDim); }
  PGAS_FN unsigned long long thread_rank() const {
    return block_rank() * detail::volume(blockDim) + detail::thread_in_block();
  }
  PGAS_FN unsigned long long num_blocks() const { return detail::volume(gridDim); }
  PGAS_FN unsigned long long block_rank() const { return detail::block_in_grid(); }
  PGAS_FN dim3 group_dim() const { return dim3(gridDim.x, gridDim.y, gridDim.z); }
  PGAS_FN dim3 dim_blocks() const { return group_dim(); }
  PGAS_FN dim3 block_index() const { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
};
PGAS_FN grid_group this_grid() { return grid_group(); }

// Any group by its members: what algorithms take that do not care which.
class thread_group {
public:
  PGAS_FN thread_group(unsigned rank, unsigned size, unsigned mask) : rank_(rank), size_(size), mask_(mask) {}
  PGAS_FN void sync() const {
    if (mask_) __syncwarp(mask_);
    else if (size_ > 1) __syncthreads();
  }
  PGAS_FN unsigned long long size() const { return size_; }
  PGAS_FN unsigned long long num_threads() const { return size_; }
  PGAS_FN unsigned long long thread_rank() const { return rank_; }
  PGAS_FN bool is_valid() const { return true; }

protected:
  unsigned rank_, size_, mask_; // a mask of 0: the block
};

class thread_block : public thread_group {
public:
  PGAS_FN thread_block() : thread_group(detail::thread_in_block(), unsigned(detail::volume(blockDim)), 0) {}
  static PGAS_FN void sync() { __syncthreads(); }
  static PGAS_FN unsigned size() { return num_threads(); }
  static PGAS_FN unsigned num_threads() { return unsigned(detail::volume(blockDim)); }
  static PGAS_FN unsigned thread_rank() { return detail::thread_in_block(); }
  static PGAS_FN dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  static PGAS_FN dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
  static PGAS_FN dim3 group_dim() { return dim3(blockDim.x, blockDim.y, blockDim.z); }
  static PGAS_FN dim3 dim_threads() { return group_dim(); }
};
PGAS_FN thread_block this_thread_block() { return thread_block(); }

// `Size` neighbouring threads of a warp, 1 to 32 and a power of two.
template <unsigned Size, class Parent = void> class thread_block_tile;
template <unsigned Size> class thread_block_tile<Size, void> : public thread_group {
  static_assert(Size && Size <= 32 && (Size & (Size - 1)) == 0, "a tile has 1, 2, 4, 8, 16 or 32 threads");

public:
  PGAS_FN thread_block_tile() : thread_group(detail::thread_in_block() % Size, Size, detail::lanes(first(), Size)) {}
  PGAS_FN void sync() const { __syncwarp(mask_); }
  static constexpr PGAS_FN unsigned size() { return Size; }
  static constexpr PGAS_FN unsigned num_threads() { return Size; }
  PGAS_FN unsigned thread_rank() const { return rank_; }
  PGAS_FN unsigned meta_group_rank() const { return detail::thread_in_block() / Size; }
  PGAS_FN unsigned meta_group_size() const { return (unsigned(detail::volume(blockDim)) + Size - 1) / Size; }

  template <class T> PGAS_FN T shfl(T value, int source) const { return __shfl_sync(mask_, value, source, Size); }
  template <class T> PGAS_FN T shfl_up(T value, unsigned delta) const { return __shfl_up_sync(mask_, value, delta, Size); }
  template <class T> PGAS_FN T shfl_down(T value, unsigned delta) const { return __shfl_down_sync(mask_, value, delta, Size); }
  template <class T> PGAS_FN T shfl_xor(T value, unsigned lanes) const { return __shfl_xor_sync(mask_, value, int(lanes), Size); }
  PGAS_FN int any(int predicate) const { return __any_sync(mask_, predicate); }
  PGAS_FN int all(int predicate) const { return __all_sync(mask_, predicate); }
  PGAS_FN unsigned ballot(int predicate) const { return __ballot_sync(mask_, predicate) >> first(); }
  template <class T> PGAS_FN unsigned match_any(T value) const { return __match_any_sync(mask_, value) >> first(); }
  template <class T> PGAS_FN unsigned match_all(T value, int &predicate) const {
    return __match_all_sync(mask_, value, &predicate) >> first();
  }

private:
  static PGAS_FN unsigned first() { return (detail::thread_in_block() & 31) & ~(Size - 1); }
};

// The group it was cut from is of no further interest.
template <unsigned Size, class Parent> class thread_block_tile : public thread_block_tile<Size, void> {};

template <unsigned Size, class Parent> PGAS_FN thread_block_tile<Size, Parent> tiled_partition(const Parent &) {
  return thread_block_tile<Size, Parent>();
}
// With a size known only when the kernel runs.
PGAS_FN thread_group tiled_partition(const thread_group &parent, unsigned size) {
  const unsigned rank = unsigned(parent.thread_rank()), first = (detail::thread_in_block() & 31) & ~(size - 1);
  return thread_group(rank % size, size, detail::lanes(first, size));
}
PGAS_FN thread_group this_thread() { return thread_group(0, 1, 1u << (detail::thread_in_block() & 31)); }

// Which threads happen to run together is not a thing that the CPU device has.
#if defined(__CUDACC_RTC__) || defined(__CUDACC__)
class coalesced_group : public thread_group {
public:
  PGAS_FN coalesced_group() : coalesced_group(__activemask(), detail::thread_in_block() & 31) {}
  PGAS_FN void sync() const { __syncwarp(mask_); }
  PGAS_FN int any(int predicate) const { return __any_sync(mask_, predicate); }
  PGAS_FN int all(int predicate) const { return __all_sync(mask_, predicate); }
  // The value of the group's thread number `source`.
  template <class T> PGAS_FN T shfl(T value, unsigned source) const {
    unsigned left = mask_;
    for (unsigned i = 0; i < source; i++) left &= left - 1;
    return __shfl_sync(mask_, value, __ffs(int(left)) - 1);
  }

private:
  PGAS_FN coalesced_group(unsigned mask, unsigned lane)
      : thread_group(unsigned(__popc(mask & ((1u << lane) - 1))), unsigned(__popc(mask)), mask) {}
};
PGAS_FN coalesced_group coalesced_threads() { return coalesced_group(); }
#else
__attribute__((error("coalesced_threads() has no meaning on the CPU device; use tiled_partition"))) thread_group coalesced_threads();
#endif

template <class Group> PGAS_FN void sync(const Group &group) { group.sync(); }

} // namespace cooperative_groups
