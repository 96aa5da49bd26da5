// SPDX-License-Identifier: Apache-2.0
// broadcast, fcollect, alltoall, reductions and reduce-scatter over a team. All return 0: what goes wrong ends the
// kernel with an error of the host program.
#pragma once

#include "types.h"

#define NVSHMEM_PGAS_COLLECTIVE(prefix, suffix, scope, name, type, call)                                              \
  NVSHMEM_PGAS_FN(scope) int prefix##_##name##suffix(nvshmem_team_t team, type *dest, const type *source,             \
                                                     size_t nelems) {                                                 \
    pgas::call(nvshmem_detail::team(team), nvshmem_detail::element<S>(dest), nvshmem_detail::element<S>(source),      \
               nelems);                                                                                               \
    return 0;                                                                                                         \
  }
#define NVSHMEM_PGAS_DATA(name, type, prefix, suffix, scope)                                                          \
  NVSHMEM_PGAS_FN(scope) int prefix##_##name##_broadcast##suffix(nvshmem_team_t team, type *dest, const type *source, \
                                                                 size_t nelems, int PE_root) {                        \
    pgas::broadcast<S>(nvshmem_detail::team(team), nvshmem_detail::element<S>(dest),                                  \
                       nvshmem_detail::element<S>(source), nelems, PE_root);                                          \
    return 0;                                                                                                         \
  }                                                                                                                   \
  NVSHMEM_PGAS_COLLECTIVE(prefix, suffix, scope, name##_fcollect, type, fcollect<S>)                                  \
  NVSHMEM_PGAS_COLLECTIVE(prefix, suffix, scope, name##_alltoall, type, alltoall<S>)
NVSHMEM_PGAS_RMA_TYPES(NVSHMEM_PGAS_DATA, nvshmem, , pgas::thread)
NVSHMEM_PGAS_RMA_TYPES(NVSHMEM_PGAS_DATA, nvshmemx, _warp, pgas::warp)
NVSHMEM_PGAS_RMA_TYPES(NVSHMEM_PGAS_DATA, nvshmemx, _block, pgas::block)
#undef NVSHMEM_PGAS_DATA

#define NVSHMEM_PGAS_BYTES(prefix, suffix, scope, name, call, root, ...)                                              \
  NVSHMEM_PGAS_FN(scope) int prefix##_##name##mem##suffix(nvshmem_team_t team, void *dest, const void *source,        \
                                                          size_t nelems root) {                                       \
    pgas::call<S>(nvshmem_detail::team(team), static_cast<char *>(dest), static_cast<const char *>(source),           \
                  nelems __VA_ARGS__);                                                                                \
    return 0;                                                                                                         \
  }
#define NVSHMEM_PGAS_COMMA ,
#define NVSHMEM_PGAS_BYTES_ALL(prefix, suffix, scope, ...)                                                            \
  NVSHMEM_PGAS_BYTES(prefix, suffix, scope, fcollect, fcollect, )                                                     \
  NVSHMEM_PGAS_BYTES(prefix, suffix, scope, alltoall, alltoall, )                                                     \
  NVSHMEM_PGAS_BYTES(prefix, suffix, scope, broadcast, broadcast, NVSHMEM_PGAS_COMMA int PE_root, , PE_root)
NVSHMEM_PGAS_SCOPES(NVSHMEM_PGAS_BYTES_ALL, )
#undef NVSHMEM_PGAS_BYTES_ALL
#undef NVSHMEM_PGAS_COMMA
#undef NVSHMEM_PGAS_BYTES

namespace nvshmem_detail {
template <class S, pgas::Reduction op, class T> PGAS_FN void reduce(nvshmem_team_t t, T *dest, const T *source, size_t n) {
  pgas::reduce<S, op>(team(t), element<S>(dest), element<S>(source), n);
}
template <class S, pgas::Reduction op, class T>
PGAS_FN void reducescatter(nvshmem_team_t t, T *dest, const T *source, size_t n) {
  pgas::reduce_scatter<S, op>(team(t), element<S>(dest), element<S>(source), n);
}
} // namespace nvshmem_detail

#define NVSHMEM_PGAS_OVER(name, type, prefix, suffix, scope, op, reduction, kind)                                     \
  NVSHMEM_PGAS_FN(scope) int prefix##_##name##_##op##_##kind##suffix(nvshmem_team_t team, type *dest,                 \
                                                                     const type *source, size_t nreduce) {            \
    nvshmem_detail::kind<S, pgas::Reduction::reduction>(team, dest, source, nreduce);                                 \
    return 0;                                                                                                         \
  }
#define NVSHMEM_PGAS_REDUCTION(name, type, prefix, suffix, scope, op, reduction)                                      \
  NVSHMEM_PGAS_OVER(name, type, prefix, suffix, scope, op, reduction, reduce)                                         \
  NVSHMEM_PGAS_OVER(name, type, prefix, suffix, scope, op, reduction, reducescatter)
#define NVSHMEM_PGAS_REDUCTIONS(prefix, suffix, scope, ...)                                                           \
  NVSHMEM_PGAS_BITWISE_REDUCE_TYPES(NVSHMEM_PGAS_REDUCTION, prefix, suffix, scope, and, and_)                         \
  NVSHMEM_PGAS_BITWISE_REDUCE_TYPES(NVSHMEM_PGAS_REDUCTION, prefix, suffix, scope, or, or_)                           \
  NVSHMEM_PGAS_BITWISE_REDUCE_TYPES(NVSHMEM_PGAS_REDUCTION, prefix, suffix, scope, xor, xor_)                         \
  NVSHMEM_PGAS_REDUCE_TYPES(NVSHMEM_PGAS_REDUCTION, prefix, suffix, scope, max, max)                                  \
  NVSHMEM_PGAS_REDUCE_TYPES(NVSHMEM_PGAS_REDUCTION, prefix, suffix, scope, min, min)                                  \
  NVSHMEM_PGAS_REDUCE_TYPES(NVSHMEM_PGAS_REDUCTION, prefix, suffix, scope, sum, sum)                                  \
  NVSHMEM_PGAS_REDUCE_TYPES(NVSHMEM_PGAS_REDUCTION, prefix, suffix, scope, prod, prod)
NVSHMEM_PGAS_SCOPES(NVSHMEM_PGAS_REDUCTIONS, )
#undef NVSHMEM_PGAS_REDUCTIONS
#undef NVSHMEM_PGAS_REDUCTION
#undef NVSHMEM_PGAS_OVER
#undef NVSHMEM_PGAS_COLLECTIVE

namespace nvshmem_detail {
template <class S> struct MaxLocation {
  template <class F> PGAS_FN void operator()(char *dst, pgas::i64 members, F source, pgas::u64 bytes) const {
    const pgas::u64 rank = pgas::arch::work_rank<S>(), size = pgas::arch::work_size<S>();
    for (pgas::u64 i = rank * sizeof(double2); i < bytes; i += size * sizeof(double2)) {
      double2 best, next;
      for (pgas::i64 k = 0; k < members; k++) {
        memcpy(&next, source(k) + i, sizeof next);
        if (k == 0 || next.x > best.x || (next.x == best.x && next.y < best.y)) best = next;
      }
      memcpy(dst + i, &best, sizeof best);
    }
  }
};
} // namespace nvshmem_detail

// x: a value, y: where it is. The largest value with its place; the smallest place of equal values.
NVSHMEM_PGAS_FN(pgas::block) int nvshmemx_double2_maxloc_reduce_block(nvshmem_team_t team, double2 *dest,
                                                                     const double2 *source, size_t nreduce) {
  pgas::detail::collective<S>(pgas::Operation::reduce, pgas::raw::Collective::reduce, "maxloc_reduce",
                              nvshmem_detail::team(team), dest, nreduce, source, nreduce, 0,
                              pgas::i64(pgas::Reduction::count), false, pgas::DType::c128,
                              nvshmem_detail::MaxLocation<S>{});
  return 0;
}
