// SPDX-License-Identifier: Apache-2.0
// Copies between this PE and a mapped peer. Destination and source are plain addresses here (see peer()).
#pragma once

#include "../state.cuh"

namespace pgas {
namespace raw {

namespace detail {
template <class T> PGAS_FN bool aligned(const void *p) { return reinterpret_cast<uintptr_t>(p) % sizeof(T) == 0; }
template <class T> PGAS_FN bool copy_word(void *dst, const void *src) {
  if (!aligned<T>(dst)) return false;
  arch::store_relaxed(static_cast<T *>(dst), arch::load_plain<T>(src)); // a local operand may have any alignment
  return true;
}
template <class T> PGAS_FN bool fetch_word(void *dst, const void *src) {
  if (!aligned<T>(src)) return false;
  arch::store_plain(dst, arch::load_relaxed(static_cast<const T *>(src)));
  return true;
}
// Whether an element of type T is one access: complex numbers need no more alignment than their parts.
template <class T> PGAS_FN constexpr bool one_word() {
  return (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8) && !IsComplex<T>::value;
}
} // namespace detail

// Copies n bytes to a peer. An aligned scalar is one store, so a flag that somebody polls is never torn.
PGAS_FN void copy(void *dst, const void *src, u64 n) {
  switch (n) {
  case 0: return;
  case 8: if (detail::copy_word<uint64_t>(dst, src)) return; break;
  case 4: if (detail::copy_word<uint32_t>(dst, src)) return; break;
  case 2: if (detail::copy_word<uint16_t>(dst, src)) return; break;
  case 1: arch::store_relaxed(static_cast<uint8_t *>(dst), *static_cast<const uint8_t *>(src)); return;
  default: break;
  }
  arch::copy_bytes(dst, src, n);
}

// Copies n bytes from a peer. An aligned scalar is one load that sees what is there now, so it can be polled.
PGAS_FN void fetch(void *dst, const void *src, u64 n) {
  switch (n) {
  case 0: return;
  case 8: if (detail::fetch_word<uint64_t>(dst, src)) return; break;
  case 4: if (detail::fetch_word<uint32_t>(dst, src)) return; break;
  case 2: if (detail::fetch_word<uint16_t>(dst, src)) return; break;
  case 1: *static_cast<uint8_t *>(dst) = arch::load_relaxed(static_cast<const uint8_t *>(src)); return;
  default: break;
  }
  arch::copy_bytes(dst, src, n);
}

// One element of a peer, without a detour through memory.
template <class T> PGAS_FN void store_element(T *to, T value) {
  if constexpr (detail::one_word<T>()) arch::store_relaxed(to, value);
  else copy(to, &value, sizeof(T));
}
template <class T> PGAS_FN T load_element(const T *from) {
  if constexpr (detail::one_word<T>()) return arch::load_relaxed(from);
  else {
    T value;
    fetch(&value, from, sizeof(T));
    return value;
  }
}

constexpr int max_dims = 64;

// One N-dimensional copy: shape with byte strides on either side. Outermost dimension first.
struct Strided {
  int ndim;
  i64 shape[max_dims], dst[max_dims], src[max_dims];
};

namespace detail {
template <class T> PGAS_FN void copy_row(char *dst, i64 ds, const char *src, i64 ss, i64 n) {
  if (aligned<T>(dst) && aligned<T>(src) && ds % i64(sizeof(T)) == 0 && ss % i64(sizeof(T)) == 0) {
    T *d = reinterpret_cast<T *>(dst);
    const T *s = reinterpret_cast<const T *>(src);
    const i64 dn = ds / i64(sizeof(T)), sn = ss / i64(sizeof(T));
    for (i64 i = 0; i < n; i++) d[i * dn] = s[i * sn];
  } else {
    for (i64 i = 0; i < n; i++) memcpy(dst + i * ds, src + i * ss, sizeof(T));
  }
}
struct word16 { u64 a, b; };

PGAS_FN void copy_row(char *dst, i64 ds, const char *src, i64 ss, i64 n, u64 itemsize) {
  switch (itemsize) {
  case 1: return copy_row<uint8_t>(dst, ds, src, ss, n);
  case 2: return copy_row<uint16_t>(dst, ds, src, ss, n);
  case 4: return copy_row<uint32_t>(dst, ds, src, ss, n);
  case 8: return copy_row<uint64_t>(dst, ds, src, ss, n);
  default:
    for (i64 i = 0; i < n; i++) memcpy(dst + i * ds, src + i * ss, itemsize);
  }
}

PGAS_FN void copy_dims(const Strided &c, int dim, char *dst, const char *src, u64 itemsize) {
  if (dim == c.ndim - 1) {
    if (c.dst[dim] == i64(itemsize) && c.src[dim] == i64(itemsize)) copy(dst, src, u64(c.shape[dim]) * itemsize);
    else copy_row(dst, c.dst[dim], src, c.src[dim], c.shape[dim], itemsize);
    return;
  }
  for (i64 i = 0; i < c.shape[dim]; i++) copy_dims(c, dim + 1, dst + i * c.dst[dim], src + i * c.src[dim], itemsize);
}
} // namespace detail

// Drops dimensions of one element and joins neighbours that both sides lay out contiguously.
PGAS_FN void simplify(Strided &c) {
  int n = 0;
  for (int i = 0; i < c.ndim; i++) {
    if (c.shape[i] == 1) continue;
    if (n > 0 && c.dst[n - 1] == c.dst[i] * c.shape[i] && c.src[n - 1] == c.src[i] * c.shape[i]) {
      c.shape[n - 1] *= c.shape[i];
      c.dst[n - 1] = c.dst[i];
      c.src[n - 1] = c.src[i];
      continue;
    }
    c.shape[n] = c.shape[i];
    c.dst[n] = c.dst[i];
    c.src[n] = c.src[i];
    n++;
  }
  c.ndim = n;
}

// Copies a strided block; `c` must have no zero extent. The two sides must not overlap.
PGAS_FN void copy_strided(Strided &c, void *dst, const void *src, u64 itemsize) {
  simplify(c);
  if (c.ndim == 0) return copy(dst, src, itemsize);
  // The dimension that moves least in memory belongs innermost: a transposed copy would otherwise stride twice.
  for (int i = 0; i < c.ndim - 1; i++) {
    const int last = c.ndim - 1;
    const i64 here = c.dst[i] < 0 ? -c.dst[i] : c.dst[i], there = c.dst[last] < 0 ? -c.dst[last] : c.dst[last];
    if (here >= there) continue;
    i64 t;
    t = c.shape[i]; c.shape[i] = c.shape[last]; c.shape[last] = t;
    t = c.dst[i]; c.dst[i] = c.dst[last]; c.dst[last] = t;
    t = c.src[i]; c.src[i] = c.src[last]; c.src[last] = t;
  }
  detail::copy_dims(c, 0, static_cast<char *>(dst), static_cast<const char *>(src), itemsize);
}

// Orders this PE's earlier puts before its later ones, for every PE. Stores to mapped peers need no more than this.
PGAS_FN void fence() { arch::fence_system(); }
// Completes this PE's operations on mapped peers: each was a store that has been issued.
PGAS_FN void quiet() { arch::fence_system(); }

} // namespace raw
} // namespace pgas
