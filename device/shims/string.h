// SPDX-License-Identifier: Apache-2.0
// memcpy and memset are built into NVRTC; here are the others that kernels use.
#pragma once

inline __device__ int memcmp(const void *a, const void *b, size_t n) {
  const unsigned char *x = static_cast<const unsigned char *>(a), *y = static_cast<const unsigned char *>(b);
  for (size_t i = 0; i < n; i++)
    if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
  return 0;
}
inline __device__ void *memmove(void *dst, const void *src, size_t n) {
  char *d = static_cast<char *>(dst);
  const char *s = static_cast<const char *>(src);
  if (d <= s || d >= s + n) return memcpy(dst, src, n);
  while (n--) d[n] = s[n];
  return dst;
}
inline __device__ size_t strlen(const char *s) {
  size_t n = 0;
  while (s[n]) n++;
  return n;
}
inline __device__ int strcmp(const char *a, const char *b) {
  while (*a && *a == *b) a++, b++;
  return int(static_cast<unsigned char>(*a)) - int(static_cast<unsigned char>(*b));
}
