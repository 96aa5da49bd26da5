// SPDX-License-Identifier: Apache-2.0
// Who and where: queries, teams, ordering, barriers.
#pragma once

#include "types.h"

PGAS_FN int nvshmem_my_pe() { return pgas::my_pe(); }
PGAS_FN int nvshmem_n_pes() { return pgas::n_pes(); }
PGAS_FN void nvshmem_info_get_version(int *major, int *minor) {
  *major = NVSHMEM_MAJOR_VERSION;
  *minor = NVSHMEM_MINOR_VERSION;
}
PGAS_FN void nvshmemx_vendor_get_version_info(int *major, int *minor, int *patch) {
  *major = NVSHMEM_VENDOR_MAJOR_VERSION;
  *minor = NVSHMEM_VENDOR_MINOR_VERSION;
  *patch = NVSHMEM_VENDOR_PATCH_VERSION;
}
// `name` has room for NVSHMEM_MAX_NAME_LEN characters.
PGAS_FN void nvshmem_info_get_name(char *name) {
  const char text[] = NVSHMEM_VENDOR_STRING;
  for (size_t i = 0; i < sizeof text; i++) name[i] = text[i];
}
PGAS_FN void *nvshmem_ptr(const void *symmetric, int pe) {
  return pgas::ptr(const_cast<char *>(static_cast<const char *>(symmetric)), pe);
}

// Queries of a team that this PE is not in give -1.
PGAS_FN int nvshmem_team_my_pe(nvshmem_team_t team) {
  const pgas::Team *t = nvshmem_detail::find_team(team);
  return t ? int(t->me) : -1;
}
PGAS_FN int nvshmem_team_n_pes(nvshmem_team_t team) {
  const pgas::Team *t = nvshmem_detail::find_team(team);
  return t ? int(t->size) : -1;
}
PGAS_FN int nvshmem_team_translate_pe(nvshmem_team_t src_team, int src_pe, nvshmem_team_t dest_team) {
  const pgas::Team *from = nvshmem_detail::find_team(src_team), *to = nvshmem_detail::find_team(dest_team);
  if (!from || !to || src_pe < 0 || src_pe >= from->size) return -1;
  return pgas::team{from}.translate(src_pe, pgas::team{to});
}

PGAS_FN void nvshmem_fence() { pgas::fence(); }
PGAS_FN void nvshmem_quiet() { pgas::quiet(); }

// flush: the sources of earlier puts may be reused. Every thread of the scope gets that for what it put itself.
#define NVSHMEM_PGAS_SYNC(prefix, suffix, scope, ...)                                                                 \
  NVSHMEM_PGAS_FN(scope) void nvshmemx_flush##suffix() {                                                              \
    pgas::arch::scope_sync<S>();                                                                                      \
    pgas::quiet();                                                                                                    \
    pgas::arch::scope_sync<S>();                                                                                      \
  }                                                                                                                   \
  NVSHMEM_PGAS_FN(scope) int prefix##_barrier##suffix(nvshmem_team_t team) {                                          \
    pgas::barrier<S>(nvshmem_detail::team(team));                                                                     \
    return 0;                                                                                                         \
  }                                                                                                                   \
  NVSHMEM_PGAS_FN(scope) int prefix##_team_sync##suffix(nvshmem_team_t team) {                                        \
    pgas::sync<S>(nvshmem_detail::team(team));                                                                        \
    return 0;                                                                                                         \
  }                                                                                                                   \
  NVSHMEM_PGAS_FN(scope) void prefix##_barrier_all##suffix() { pgas::barrier_all<S>(); }                              \
  NVSHMEM_PGAS_FN(scope) void prefix##_sync_all##suffix() { pgas::sync_all<S>(); }
NVSHMEM_PGAS_SCOPES(NVSHMEM_PGAS_SYNC, )
#undef NVSHMEM_PGAS_SYNC
