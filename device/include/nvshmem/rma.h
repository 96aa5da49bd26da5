// SPDX-License-Identifier: Apache-2.0
// put, get, p, g, iput and iget: for every element type, for elements of 8 to 128 bits, and for bytes.
#pragma once

#include "types.h"

// Strided copies in both directions; dst and sst are the strides of destination and source, in elements.
#define NVSHMEM_PGAS_COPY(prefix, suffix, scope, name, type, number, call)                                            \
  NVSHMEM_PGAS_FN(scope) void prefix##_##name##suffix(type *dest, const type *source, size_t number, int pe) {        \
    pgas::call<S>(nvshmem_detail::element<S>(dest), nvshmem_detail::element<S>(source), number, pe);                        \
  }
#define NVSHMEM_PGAS_STRIDED(prefix, suffix, scope, name, type, call)                                                 \
  NVSHMEM_PGAS_FN(scope) void prefix##_##name##suffix(type *dest, const type *source, ptrdiff_t dst, ptrdiff_t sst,   \
                                                      size_t nelems, int pe) {                                        \
    pgas::call<S>(nvshmem_detail::element<S>(dest), nvshmem_detail::element<S>(source), dst, sst, nelems, pe);              \
  }
#define NVSHMEM_PGAS_TYPED_RMA(name, type, prefix, suffix, scope)                                                     \
  NVSHMEM_PGAS_COPY(prefix, suffix, scope, name##_put, type, nelems, put)                                             \
  NVSHMEM_PGAS_COPY(prefix, suffix, scope, name##_get, type, nelems, get)                                             \
  NVSHMEM_PGAS_COPY(prefix, suffix, scope, name##_put_nbi, type, nelems, put_nbi)                                     \
  NVSHMEM_PGAS_COPY(prefix, suffix, scope, name##_get_nbi, type, nelems, get_nbi)                                     \
  NVSHMEM_PGAS_STRIDED(prefix, suffix, scope, name##_iput, type, iput)                                                \
  NVSHMEM_PGAS_STRIDED(prefix, suffix, scope, name##_iget, type, iget)
NVSHMEM_PGAS_RMA_TYPES(NVSHMEM_PGAS_TYPED_RMA, nvshmem, , pgas::thread)
NVSHMEM_PGAS_RMA_TYPES(NVSHMEM_PGAS_TYPED_RMA, nvshmemx, _warp, pgas::warp)
NVSHMEM_PGAS_RMA_TYPES(NVSHMEM_PGAS_TYPED_RMA, nvshmemx, _block, pgas::block)
#undef NVSHMEM_PGAS_TYPED_RMA
#undef NVSHMEM_PGAS_COPY
#undef NVSHMEM_PGAS_STRIDED

// One element.
#define NVSHMEM_PGAS_ELEMENT(name, type, ...)                                                                         \
  NVSHMEM_PGAS_FN(pgas::thread) void nvshmem_##name##_p(type *dest, const type value, int pe) {                       \
    pgas::p(nvshmem_detail::element<S>(dest), nvshmem_detail::value<type>(value), pe);                                \
  }                                                                                                                   \
  NVSHMEM_PGAS_FN(pgas::thread) type nvshmem_##name##_g(const type *source, int pe) {                                 \
    return nvshmem_detail::same_bits<type>(pgas::g(nvshmem_detail::element<S>(source), pe));                          \
  }
NVSHMEM_PGAS_RMA_TYPES(NVSHMEM_PGAS_ELEMENT, )
#undef NVSHMEM_PGAS_ELEMENT

// Elements of so many bits, whatever they are. A contiguous copy needs no element type.
#define NVSHMEM_PGAS_BYTES(prefix, suffix, scope, name, bits, number, call)                                           \
  NVSHMEM_PGAS_FN(scope) void prefix##_##name##suffix(void *dest, const void *source, size_t number, int pe) {        \
    pgas::call<S>(static_cast<char *>(dest), static_cast<const char *>(source), number * (bits / 8), pe);             \
  }
#define NVSHMEM_PGAS_SIZED_STRIDED(prefix, suffix, scope, name, type, call)                                           \
  NVSHMEM_PGAS_FN(scope) void prefix##_##name##suffix(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,   \
                                                      size_t nelems, int pe) {                                        \
    pgas::call<S>(static_cast<type *>(dest), static_cast<const type *>(source), dst, sst, nelems, pe);                \
  }
#define NVSHMEM_PGAS_SIZED_RMA(bits, type, prefix, suffix, scope)                                                     \
  NVSHMEM_PGAS_BYTES(prefix, suffix, scope, put##bits, bits, nelems, put)                                             \
  NVSHMEM_PGAS_BYTES(prefix, suffix, scope, get##bits, bits, nelems, get)                                             \
  NVSHMEM_PGAS_BYTES(prefix, suffix, scope, put##bits##_nbi, bits, nelems, put_nbi)                                   \
  NVSHMEM_PGAS_BYTES(prefix, suffix, scope, get##bits##_nbi, bits, nelems, get_nbi)                                   \
  NVSHMEM_PGAS_SIZED_STRIDED(prefix, suffix, scope, iput##bits, type, iput)                                           \
  NVSHMEM_PGAS_SIZED_STRIDED(prefix, suffix, scope, iget##bits, type, iget)
#define NVSHMEM_PGAS_UNTYPED_RMA(prefix, suffix, scope, ...)                                                          \
  NVSHMEM_PGAS_SIZES(NVSHMEM_PGAS_SIZED_RMA, prefix, suffix, scope)                                                   \
  NVSHMEM_PGAS_BYTES(prefix, suffix, scope, putmem, 8, bytes, put)                                                    \
  NVSHMEM_PGAS_BYTES(prefix, suffix, scope, getmem, 8, bytes, get)                                                    \
  NVSHMEM_PGAS_BYTES(prefix, suffix, scope, putmem_nbi, 8, bytes, put_nbi)                                            \
  NVSHMEM_PGAS_BYTES(prefix, suffix, scope, getmem_nbi, 8, bytes, get_nbi)
NVSHMEM_PGAS_SCOPES(NVSHMEM_PGAS_UNTYPED_RMA, )
#undef NVSHMEM_PGAS_UNTYPED_RMA
#undef NVSHMEM_PGAS_SIZED_RMA
#undef NVSHMEM_PGAS_SIZED_STRIDED
#undef NVSHMEM_PGAS_BYTES
