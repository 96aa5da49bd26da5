// SPDX-License-Identifier: Apache-2.0
// Puts with a signal, signals, and waiting for variables that other PEs change.
#pragma once

#include "types.h"

#define NVSHMEM_PGAS_PUT_SIGNAL(prefix, suffix, scope, name, type, call)                                              \
  NVSHMEM_PGAS_FN(scope) void prefix##_##name##suffix(type *dest, const type *source, size_t nelems,                  \
                                                      uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) {      \
    pgas::call<S>(nvshmem_detail::element<S>(dest), nvshmem_detail::element<S>(source), nelems, sig_addr, signal,           \
                  nvshmem_detail::signal_op(sig_op), pe);                                                             \
  }
#define NVSHMEM_PGAS_TYPED_PUT_SIGNAL(name, type, prefix, suffix, scope)                                              \
  NVSHMEM_PGAS_PUT_SIGNAL(prefix, suffix, scope, name##_put_signal, type, put_signal)                                 \
  NVSHMEM_PGAS_PUT_SIGNAL(prefix, suffix, scope, name##_put_signal_nbi, type, put_signal_nbi)
NVSHMEM_PGAS_RMA_TYPES(NVSHMEM_PGAS_TYPED_PUT_SIGNAL, nvshmem, , pgas::thread)
NVSHMEM_PGAS_RMA_TYPES(NVSHMEM_PGAS_TYPED_PUT_SIGNAL, nvshmemx, _warp, pgas::warp)
NVSHMEM_PGAS_RMA_TYPES(NVSHMEM_PGAS_TYPED_PUT_SIGNAL, nvshmemx, _block, pgas::block)
#undef NVSHMEM_PGAS_TYPED_PUT_SIGNAL
#undef NVSHMEM_PGAS_PUT_SIGNAL

#define NVSHMEM_PGAS_PUT_SIGNAL(prefix, suffix, scope, name, bits, call)                                              \
  NVSHMEM_PGAS_FN(scope) void prefix##_##name##suffix(void *dest, const void *source, size_t nelems,                  \
                                                      uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) {      \
    pgas::call<S>(static_cast<char *>(dest), static_cast<const char *>(source), nelems * (bits / 8), sig_addr,        \
                  signal, nvshmem_detail::signal_op(sig_op), pe);                                                     \
  }
#define NVSHMEM_PGAS_SIZED_PUT_SIGNAL(bits, type, prefix, suffix, scope)                                              \
  NVSHMEM_PGAS_PUT_SIGNAL(prefix, suffix, scope, put##bits##_signal, bits, put_signal)                                \
  NVSHMEM_PGAS_PUT_SIGNAL(prefix, suffix, scope, put##bits##_signal_nbi, bits, put_signal_nbi)
#define NVSHMEM_PGAS_UNTYPED_PUT_SIGNAL(prefix, suffix, scope, ...)                                                   \
  NVSHMEM_PGAS_SIZES(NVSHMEM_PGAS_SIZED_PUT_SIGNAL, prefix, suffix, scope)                                            \
  NVSHMEM_PGAS_PUT_SIGNAL(prefix, suffix, scope, putmem_signal, 8, put_signal)                                        \
  NVSHMEM_PGAS_PUT_SIGNAL(prefix, suffix, scope, putmem_signal_nbi, 8, put_signal_nbi)
NVSHMEM_PGAS_SCOPES(NVSHMEM_PGAS_UNTYPED_PUT_SIGNAL, )
#undef NVSHMEM_PGAS_UNTYPED_PUT_SIGNAL
#undef NVSHMEM_PGAS_SIZED_PUT_SIGNAL
#undef NVSHMEM_PGAS_PUT_SIGNAL

PGAS_FN void nvshmemx_signal_op(uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) {
  pgas::signal_op(sig_addr, signal, nvshmem_detail::signal_op(sig_op), pe);
}
PGAS_FN uint64_t nvshmem_signal_fetch(const uint64_t *sig_addr) { return pgas::signal_fetch(sig_addr); }
PGAS_FN uint64_t nvshmem_signal_wait_until(const uint64_t *sig_addr, int cmp, uint64_t cmp_val) {
  return pgas::signal_wait_until(sig_addr, nvshmem_detail::compare(cmp), cmp_val);
}

// Elements whose status is not zero are left out; status may be null.
#define NVSHMEM_PGAS_ON_ONE(result, name, type, call)                                                                 \
  NVSHMEM_PGAS_FN(pgas::thread) result nvshmem_##name(type *ivar, int cmp, type cmp_value) {                          \
    return result(pgas::call(nvshmem_detail::element<S>(ivar), nvshmem_detail::compare(cmp), cmp_value));             \
  }
#define NVSHMEM_PGAS_ON_MANY(result, name, type, value, call)                                                         \
  NVSHMEM_PGAS_FN(pgas::thread) result nvshmem_##name(type *ivars, size_t nelems, const int *status, int cmp,         \
                                                      value) {                                                        \
    return result(pgas::call(nvshmem_detail::element<S>(ivars), nelems, status, nvshmem_detail::compare(cmp),         \
                             cmp_value));                                                                             \
  }
#define NVSHMEM_PGAS_ON_SOME(name, type, value, call)                                                                 \
  NVSHMEM_PGAS_FN(pgas::thread) size_t nvshmem_##name(type *ivars, size_t nelems, size_t *indices,                    \
                                                      const int *status, int cmp, value) {                            \
    return pgas::call(nvshmem_detail::element<S>(ivars), nelems, indices, status, nvshmem_detail::compare(cmp),       \
                      cmp_value);                                                                                     \
  }
#define NVSHMEM_PGAS_WAITS(name, type, suffix, value)                                                                 \
  NVSHMEM_PGAS_ON_MANY(void, name##_wait_until_all##suffix, type, value, wait_until_all##suffix)                      \
  NVSHMEM_PGAS_ON_MANY(size_t, name##_wait_until_any##suffix, type, value, wait_until_any##suffix)                    \
  NVSHMEM_PGAS_ON_SOME(name##_wait_until_some##suffix, type, value, wait_until_some##suffix)                          \
  NVSHMEM_PGAS_ON_MANY(int, name##_test_all##suffix, type, value, test_all##suffix)                                   \
  NVSHMEM_PGAS_ON_MANY(size_t, name##_test_any##suffix, type, value, test_any##suffix)                                \
  NVSHMEM_PGAS_ON_SOME(name##_test_some##suffix, type, value, test_some##suffix)
#define NVSHMEM_PGAS_TYPED_WAITS(name, type, ...)                                                                     \
  NVSHMEM_PGAS_ON_ONE(void, name##_wait_until, type, wait_until)                                                      \
  NVSHMEM_PGAS_ON_ONE(int, name##_test, type, test)                                                                   \
  NVSHMEM_PGAS_WAITS(name, type, , type cmp_value)                                                                    \
  NVSHMEM_PGAS_WAITS(name, type, _vector, const type *cmp_value)
NVSHMEM_PGAS_WAIT_TYPES(NVSHMEM_PGAS_TYPED_WAITS, )
#undef NVSHMEM_PGAS_TYPED_WAITS
#undef NVSHMEM_PGAS_WAITS
#undef NVSHMEM_PGAS_ON_SOME
#undef NVSHMEM_PGAS_ON_MANY
#undef NVSHMEM_PGAS_ON_ONE
