// SPDX-License-Identifier: Apache-2.0
// NVSHMEM's types and constants with the values they have there, its lists of element types, and the way from each to
// what pypgas calls the same thing.
#pragma once

#include "../pypgas.cuh"

// The half types come from CUDA's headers. NVRTC may not have them; then halves can be stored and moved, and no more.
#if defined(PGAS_CPU_MODE) || __has_include(<cuda_fp16.h>)
#include <cuda_fp16.h>
#else
struct alignas(2) __half { unsigned short bits; };
typedef __half half;
#endif
#if defined(PGAS_CPU_MODE) || __has_include(<cuda_bf16.h>)
#include <cuda_bf16.h>
#else
struct alignas(2) __nv_bfloat16 { unsigned short bits; };
typedef __nv_bfloat16 nv_bfloat16;
#endif

// The version of OpenSHMEM that NVSHMEM reports, and the version of NVSHMEM whose device functions these are.
#define NVSHMEM_MAJOR_VERSION 1
#define NVSHMEM_MINOR_VERSION 3
#define NVSHMEM_VENDOR_MAJOR_VERSION 3
#define NVSHMEM_VENDOR_MINOR_VERSION 8
#define NVSHMEM_VENDOR_PATCH_VERSION 0
#define NVSHMEM_VENDOR_VERSION 30800
#define NVSHMEM_VENDOR_STRING "pypgas"
#define NVSHMEM_MAX_NAME_LEN 256

typedef int32_t nvshmem_team_t;
enum nvshmem_team_id_t {
  NVSHMEM_TEAM_INVALID = -1,
  NVSHMEM_TEAM_WORLD = 0,
  NVSHMEM_TEAM_WORLD_INDEX = 0,
  NVSHMEM_TEAM_SHARED = 1,
  NVSHMEM_TEAM_SHARED_INDEX = 1,
  NVSHMEMX_TEAM_NODE = 2,
  NVSHMEM_TEAM_NODE_INDEX = 2
};

enum nvshmemx_cmp_type_t {
  NVSHMEM_CMP_EQ = 0,
  NVSHMEM_CMP_NE = 1,
  NVSHMEM_CMP_GT = 2,
  NVSHMEM_CMP_LE = 3,
  NVSHMEM_CMP_LT = 4,
  NVSHMEM_CMP_GE = 5
};
enum nvshmemx_signal_op_t { NVSHMEM_SIGNAL_SET = 9, NVSHMEM_SIGNAL_ADD = 10 };
enum nvshmemx_thread_support_t {
  NVSHMEM_THREAD_SINGLE = 0,
  NVSHMEM_THREAD_FUNNELED = 1,
  NVSHMEM_THREAD_SERIALIZED = 2,
  NVSHMEM_THREAD_MULTIPLE = 3
};
enum nvshmem_pe_index_t { NVSHMEM_PE_INVALID = -1 };

namespace nvshmem_detail {

// The element that pypgas copies, adds and reduces in place of CUDA's halves: the same bits.
template <class T> struct Element { typedef T type; };
template <> struct Element<__half> { typedef pgas::half type; };
template <> struct Element<__nv_bfloat16> { typedef pgas::bfloat16 type; };

// Naming S makes what contains the call depend on it: see NVSHMEM_PGAS_FN.
template <class S, class T> PGAS_FN typename Element<T>::type *element(T *p) {
  return reinterpret_cast<typename Element<T>::type *>(p);
}
template <class S, class T> PGAS_FN const typename Element<T>::type *element(const T *p) {
  return reinterpret_cast<const typename Element<T>::type *>(p);
}
// The same bits in the other type: a half of CUDA's as one of ours, and back.
template <class To, class From> PGAS_FN To same_bits(From value) {
  static_assert(sizeof(To) == sizeof(From), "not the same bits");
  if constexpr (pgas::is_same<To, From>::value) return value;
  else {
    To result;
    memcpy(&result, &value, sizeof result);
    return result;
  }
}
template <class T> PGAS_FN typename Element<T>::type value(T v) { return same_bits<typename Element<T>::type>(v); }

PGAS_FN pgas::Compare compare(int cmp) {
  switch (cmp) {
  case NVSHMEM_CMP_EQ: return pgas::Compare::eq;
  case NVSHMEM_CMP_NE: return pgas::Compare::ne;
  case NVSHMEM_CMP_GT: return pgas::Compare::gt;
  case NVSHMEM_CMP_LE: return pgas::Compare::le;
  case NVSHMEM_CMP_LT: return pgas::Compare::lt;
  default: pgas::arch::check(cmp == NVSHMEM_CMP_GE, "cmp is none of NVSHMEM_CMP_*"); return pgas::Compare::ge;
  }
}
PGAS_FN pgas::SignalOp signal_op(int op) {
  pgas::arch::check(op == NVSHMEM_SIGNAL_SET || op == NVSHMEM_SIGNAL_ADD, "sig_op is neither NVSHMEM_SIGNAL_SET nor _ADD");
  return op == NVSHMEM_SIGNAL_ADD ? pgas::SignalOp::add : pgas::SignalOp::set;
}

// Null where this PE knows no such team.
PGAS_FN const pgas::Team *find_team(nvshmem_team_t id) {
  const pgas::State &s = pgas::detail::state();
  return id >= 0 && pgas::u64(id) < s.max_teams ? s.teams[id] : nullptr;
}
PGAS_FN pgas::team team(nvshmem_team_t id) {
  const pgas::Team *found = find_team(id);
  pgas::arch::check(found != nullptr, "this PE is in no team of that number");
  return pgas::team{found};
}

} // namespace nvshmem_detail

// Lists of element types, as NVSHMEM has them: f(name in functions, type, ...) for each.
#define NVSHMEM_PGAS_WORD_TYPES(f, ...)                                                                               \
  f(int, int, __VA_ARGS__)                                                                                            \
  f(long, long, __VA_ARGS__)                                                                                          \
  f(longlong, long long, __VA_ARGS__)                                                                                 \
  f(uint, unsigned int, __VA_ARGS__)                                                                                  \
  f(ulong, unsigned long, __VA_ARGS__)                                                                                \
  f(ulonglong, unsigned long long, __VA_ARGS__)                                                                       \
  f(int32, int32_t, __VA_ARGS__)                                                                                      \
  f(int64, int64_t, __VA_ARGS__)                                                                                      \
  f(uint32, uint32_t, __VA_ARGS__)                                                                                    \
  f(uint64, uint64_t, __VA_ARGS__)                                                                                    \
  f(size, size_t, __VA_ARGS__)                                                                                        \
  f(ptrdiff, ptrdiff_t, __VA_ARGS__)
#define NVSHMEM_PGAS_WAIT_TYPES(f, ...)                                                                               \
  NVSHMEM_PGAS_WORD_TYPES(f, __VA_ARGS__)                                                                             \
  f(short, short, __VA_ARGS__)                                                                                        \
  f(ushort, unsigned short, __VA_ARGS__)
#define NVSHMEM_PGAS_RMA_TYPES(f, ...)                                                                                \
  NVSHMEM_PGAS_WAIT_TYPES(f, __VA_ARGS__)                                                                             \
  f(bfloat16, __nv_bfloat16, __VA_ARGS__)                                                                             \
  f(half, __half, __VA_ARGS__)                                                                                        \
  f(float, float, __VA_ARGS__)                                                                                        \
  f(double, double, __VA_ARGS__)                                                                                      \
  f(char, char, __VA_ARGS__)                                                                                          \
  f(schar, signed char, __VA_ARGS__)                                                                                  \
  f(uchar, unsigned char, __VA_ARGS__)                                                                                \
  f(int8, int8_t, __VA_ARGS__)                                                                                        \
  f(int16, int16_t, __VA_ARGS__)                                                                                      \
  f(uint8, uint8_t, __VA_ARGS__)                                                                                      \
  f(uint16, uint16_t, __VA_ARGS__)
#define NVSHMEM_PGAS_BITWISE_AMO_TYPES(f, ...)                                                                        \
  f(uint, unsigned int, __VA_ARGS__)                                                                                  \
  f(ulong, unsigned long, __VA_ARGS__)                                                                                \
  f(ulonglong, unsigned long long, __VA_ARGS__)                                                                       \
  f(int32, int32_t, __VA_ARGS__)                                                                                      \
  f(int64, int64_t, __VA_ARGS__)                                                                                      \
  f(uint32, uint32_t, __VA_ARGS__)                                                                                    \
  f(uint64, uint64_t, __VA_ARGS__)
#define NVSHMEM_PGAS_BITWISE_REDUCE_TYPES(f, ...)                                                                     \
  f(uchar, unsigned char, __VA_ARGS__)                                                                                \
  f(ushort, unsigned short, __VA_ARGS__)                                                                              \
  f(uint, unsigned int, __VA_ARGS__)                                                                                  \
  f(ulong, unsigned long, __VA_ARGS__)                                                                                \
  f(ulonglong, unsigned long long, __VA_ARGS__)                                                                       \
  f(int8, int8_t, __VA_ARGS__)                                                                                        \
  f(int16, int16_t, __VA_ARGS__)                                                                                      \
  f(int32, int32_t, __VA_ARGS__)                                                                                      \
  f(int64, int64_t, __VA_ARGS__)                                                                                      \
  f(uint8, uint8_t, __VA_ARGS__)                                                                                      \
  f(uint16, uint16_t, __VA_ARGS__)                                                                                    \
  f(uint32, uint32_t, __VA_ARGS__)                                                                                    \
  f(uint64, uint64_t, __VA_ARGS__)                                                                                    \
  f(size, size_t, __VA_ARGS__)
#define NVSHMEM_PGAS_REDUCE_TYPES(f, ...)                                                                             \
  NVSHMEM_PGAS_BITWISE_REDUCE_TYPES(f, __VA_ARGS__)                                                                   \
  f(char, char, __VA_ARGS__)                                                                                          \
  f(schar, signed char, __VA_ARGS__)                                                                                  \
  f(short, short, __VA_ARGS__)                                                                                        \
  f(int, int, __VA_ARGS__)                                                                                            \
  f(long, long, __VA_ARGS__)                                                                                          \
  f(longlong, long long, __VA_ARGS__)                                                                                 \
  f(bfloat16, __nv_bfloat16, __VA_ARGS__)                                                                             \
  f(half, __half, __VA_ARGS__)                                                                                        \
  f(float, float, __VA_ARGS__)                                                                                        \
  f(double, double, __VA_ARGS__)
#define NVSHMEM_PGAS_SIZES(f, ...)                                                                                    \
  f(8, uint8_t, __VA_ARGS__)                                                                                          \
  f(16, uint16_t, __VA_ARGS__)                                                                                        \
  f(32, uint32_t, __VA_ARGS__)                                                                                        \
  f(64, uint64_t, __VA_ARGS__)                                                                                        \
  f(128, pgas::raw::detail::word16, __VA_ARGS__)

// Most functions come for a thread, a warp and a block: f(prefix, suffix, scope, ...).
#define NVSHMEM_PGAS_SCOPES(f, ...)                                                                                   \
  f(nvshmem, , pgas::thread, __VA_ARGS__)                                                                             \
  f(nvshmemx, _warp, pgas::warp, __VA_ARGS__)                                                                         \
  f(nvshmemx, _block, pgas::block, __VA_ARGS__)

// A function of a list is a template with nothing to choose, so that compilers look into the body of those that are
// called only: there are some two thousand. `S` must occur in the body, or it would be looked into at once.
#define NVSHMEM_PGAS_FN(...) template <class S = __VA_ARGS__> PGAS_FN
