// SPDX-License-Identifier: Apache-2.0
// The rules of the memory model (docs/memory-model.md) inside kernels. Every kernel runs its pattern `rounds` times and
// writes down what it has seen that is forbidden: report[0] counts, and report[1..3] have the first round, what had to be
// there, and what was there.
#include <pypgas.cuh>

using pgas::u64;
using pgas::Compare;
using pgas::SignalOp;
using pgas::block;
using pgas::thread;
using pgas::warp;

__device__ inline void wrong(u64 *report, u64 round, u64 expected, u64 seen) {
  if (atomicAdd((unsigned long long *)report, 1ull)) return;
  report[1] = round;
  report[2] = expected;
  report[3] = seen;
}
__device__ inline int next_pe() { return (pgas::my_pe() + 1) % pgas::n_pes(); }
__device__ inline int previous_pe() { return (pgas::my_pe() + pgas::n_pes() - 1) % pgas::n_pes(); }

// ---- messages: rules 5, 10 to 14

enum How { set, add, fenced, quieted };

// Block 0 sends to the next PE, block 1 receives from the one before; the sender may be `depth` messages ahead.
template <class S, int how>
__global__ void message(u64 *slots, u64 *signal, u64 *credit, u64 *mine, u64 rounds, int length, int depth, u64 *report) {
  const int to = next_pe(), from = previous_pe();
  for (u64 r = 1; r <= rounds; r++) {
    u64 *slot = slots + (r - 1) % u64(depth) * u64(length);
    if (blockIdx.x == 0) {
      if (r > u64(depth) && threadIdx.x == 0) pgas::signal_wait_until(credit, Compare::ge, r - u64(depth));
      __syncthreads();
      for (int i = threadIdx.x; i < length; i += blockDim.x) mine[i] = r * 1000 + u64(i);
      if (how == set || how == add) {
        pgas::put_signal<S>(slot, mine, length, signal, how == set ? r : 1, how == set ? SignalOp::set : SignalOp::add, to);
      } else if (how == fenced) {
        pgas::put<S>(slot, mine, length, to);
        if (threadIdx.x == 0) {
          pgas::fence();
          pgas::signal_set(signal, r, to);
        }
      } else {
        pgas::put_nbi<S>(slot, mine, length, to);
        if (threadIdx.x == 0) {
          pgas::quiet();
          pgas::p(signal, r, to);
        }
        __syncthreads();
      }
    } else {
      if (threadIdx.x == 0) {
        if (how == quieted) pgas::wait_until(signal, Compare::ge, r);
        else if (pgas::signal_wait_until(signal, Compare::ge, r) < r) wrong(report, r, r, 0);
      }
      __syncthreads();
      for (int i = threadIdx.x; i < length; i += blockDim.x)
        if (slot[i] != r * 1000 + u64(i)) wrong(report, r, r * 1000 + u64(i), slot[i]);
      __syncthreads();
      if (threadIdx.x == 0) pgas::signal_set(credit, r, from);
    }
  }
}

// Nobody waits: whatever the signal says has to be there, however far the sender has got since. Its last elements are
// looked at first.
template <class S> __global__ void watch(u64 *data, u64 *signal, u64 *mine, u64 rounds, int length, u64 *report) {
  const int to = next_pe();
  for (u64 r = 1; r <= rounds; r++) {
    for (int i = threadIdx.x; i < length; i += blockDim.x) mine[i] = r;
    pgas::put_signal<S>(data, mine, length, signal, r, SignalOp::set, to);
    if (threadIdx.x == 0) pgas::fence();
    for (int look = 0; look < 4; look++) {
      const u64 seen = pgas::signal_fetch(signal);
      for (int i = length - 1 - int(threadIdx.x); i >= 0; i -= blockDim.x) {
        const u64 found = pgas::arch::load_relaxed(data + i);
        if (found < seen) wrong(report, r, seen, found);
      }
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) pgas::signal_wait_until(signal, Compare::eq, rounds);
  __syncthreads();
  for (int i = threadIdx.x; i < length; i += blockDim.x)
    if (data[i] != rounds) wrong(report, rounds, rounds, data[i]);
}

// ---- waits that reload: rules 9, 12

enum Wait { until, signal_until, all, any, some, all_vector, any_vector, some_vector, tested, fetched };

template <int form> __device__ void await(u64 *flags, u64 r) {
  const int status[2] = {0, 0};
  const u64 values[2] = {r, r};
  size_t indices[2];
  if (form == until) pgas::wait_until(flags, Compare::ge, r);
  else if (form == signal_until) pgas::signal_wait_until(flags, Compare::ge, r);
  else if (form == all) pgas::wait_until_all(flags, 2, status, Compare::ge, r);
  else if (form == any) pgas::wait_until_any(flags, 2, status, Compare::ge, r);
  else if (form == some) pgas::wait_until_some(flags, 2, indices, status, Compare::ge, r);
  else if (form == all_vector) pgas::wait_until_all_vector(flags, 2, status, Compare::ge, values);
  else if (form == any_vector) pgas::wait_until_any_vector(flags, 2, status, Compare::ge, values);
  else if (form == some_vector) pgas::wait_until_some_vector(flags, 2, indices, status, Compare::ge, values);
  else if (form == tested) while (!pgas::test(flags, Compare::ge, r)) __nanosleep(100);
  else while (pgas::atomic_fetch(flags, pgas::my_pe()) < r) __nanosleep(100);
}

// A number goes around the ring, and each PE adds one to the data before it passes them on: order passes on, too.
template <int form> __global__ void relay(u64 *flags, u64 *data, u64 rounds, u64 *report) {
  const u64 me = u64(pgas::my_pe()), n = u64(pgas::n_pes());
  const int to = next_pe();
  for (u64 r = 1; r <= rounds; r++) {
    if (me || r > 1) await<form>(flags, me ? r : r - 1);
    const u64 expected = (r - 1) * n + me;
    if (*data != expected) wrong(report, r, expected, *data);
    pgas::p(data, expected + 1, to);
    pgas::fence();
    pgas::p(flags + 1, r, to);
    pgas::p(flags, r, to);
  }
  await<form>(flags, rounds);
}

// ---- atomics: rules 15, 16

template <class T> __global__ void adds(T *counter, u64 rounds, int pe) {
  for (u64 r = 0; r < rounds; r++) pgas::atomic_add(counter, T(1.0f), pe);
}
template <> __global__ void adds<u64>(u64 *counter, u64 rounds, int pe) { // all forms that add
  for (u64 r = 0; r < rounds; r++) {
    if (r % 4 == 0) pgas::atomic_add(counter, u64(1), pe);
    else if (r % 4 == 1) pgas::atomic_inc(counter, pe);
    else if (r % 4 == 2) pgas::signal_add(counter, 1, pe);
    else pgas::atomic_fetch_add(counter, u64(1), pe);
  }
}
// Each ticket is drawn once if the table on PE 0, which has a place for each, is full afterwards.
__global__ void tickets(u64 *counter, unsigned char *table, u64 rounds, u64 *report) {
  u64 last = 0;
  for (u64 r = 0; r < rounds; r++) {
    const u64 ticket = pgas::atomic_fetch_inc(counter, 0);
    if (r && ticket <= last) wrong(report, r, last + 1, ticket);
    last = ticket;
    pgas::p(table + ticket, (unsigned char)1, 0);
  }
}
// A lock of compare_swap, and what it guards.
__global__ void guarded(u64 *lock, u64 *guarded, u64 rounds) {
  for (u64 r = 0; r < rounds; r++) {
    while (pgas::atomic_compare_swap(lock, u64(0), u64(1), 0)) __nanosleep(100);
    pgas::p(guarded, pgas::g(guarded, 0) + 1, 0);
    pgas::quiet();
    pgas::atomic_set(lock, u64(0), 0);
  }
}

// ---- coming together: rules 7, 23, 24

// Each PE writes to all, and all of it is there after the barrier.
template <class S> __global__ void barriers(u64 *boxes, u64 rounds, u64 *report) {
  const int me = pgas::my_pe(), n = pgas::n_pes();
  for (u64 r = 1; r <= rounds; r++) {
    u64 *box = boxes + r % 2 * u64(n);
    for (int pe = threadIdx.x; pe < n; pe += blockDim.x) pgas::p(box + me, r, pe);
    pgas::barrier_all<S>();
    for (int pe = threadIdx.x; pe < n; pe += blockDim.x)
      if (box[pe] != r) wrong(report, r, r, box[pe]);
  }
}
// The same for stores of its own and sync.
template <class S> __global__ void syncs(u64 *boxes, u64 rounds, u64 *report) {
  for (u64 r = 1; r <= rounds; r++) {
    u64 *box = boxes + r % 2;
    if (threadIdx.x == 0) *box = r;
    pgas::sync_all<S>();
    for (int pe = threadIdx.x; pe < pgas::n_pes(); pe += blockDim.x) {
      const u64 seen = pgas::g(box, pe);
      if (seen != r) wrong(report, r, r, seen);
    }
  }
}
// Each PE updates its own element, completes it, and reads its neighbour's: not all may miss.
__global__ void store_buffers(u64 *elements, int *saw, int *sum, u64 rounds, int batch, u64 *report) {
  const int to = next_pe(), me = pgas::my_pe();
  for (u64 r = 1; r <= rounds; r++) {
    pgas::barrier_all();
    for (int i = 0; i < batch; i++) {
      pgas::p(elements + i * 8, r, me);
      pgas::quiet();
      saw[i] = pgas::g(elements + i * 8, to) >= r;
    }
    pgas::reduce<thread, pgas::Reduction::sum>(pgas::world(), sum, saw, batch);
    for (int i = 0; i < batch; i++)
      if (sum[i] == 0) wrong(report, r, 1, 0);
  }
}

// ---- more blocks than cores

// Every block waits for the block after it, on the PE before, so that the first ones can only end after the last ones.
__global__ void chain(u64 *signals, u64 rounds, u64 *report) {
  const unsigned b = blockIdx.x, last = gridDim.x - 1;
  const int to = next_pe();
  for (u64 r = 1; r <= rounds; r++) {
    if (threadIdx.x == 0 && b < last && pgas::signal_wait_until(signals + b, Compare::ge, r) < r) wrong(report, r, r, 0);
    __syncthreads();
    if (threadIdx.x == blockDim.x - 1 && b > 0) pgas::signal_add(signals + b - 1, 1, to);
  }
}
