// SPDX-License-Identifier: Apache-2.0
// Warp operations: the last lane of the mask to come computes every lane's result (in the runtime).
#pragma once

namespace pgas {
namespace cpu {

inline unsigned long long exchange(Warp kind, unsigned mask, unsigned long long value, int source = 0, bool is_signed = false) {
  WarpCall call = {kind, mask, source, is_signed, value, 0};
  api->warp(&call);
  return call.result;
}
template <class T> inline T shuffle(unsigned mask, T value, int source) {
  static_assert(sizeof(T) <= 8, "shuffles move at most 8 bytes");
  unsigned long long bits = 0;
  memcpy(&bits, &value, sizeof value);
  bits = exchange(Warp::shuffle, mask, bits, source);
  memcpy(&value, &bits, sizeof value);
  return value;
}
// The lane to read from, or the own one where the source would leave the segment of `width` lanes.
inline int segment(int lane, int width) { return lane / width * width; }

} // namespace cpu
} // namespace pgas

template <class T> inline T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  const int lane = int(pgas::cpu::self->lane);
  return pgas::cpu::shuffle(mask, value, pgas::cpu::segment(lane, width) + (source & (width - 1)));
}
template <class T> inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const int lane = int(pgas::cpu::self->lane), source = lane - int(delta);
  return pgas::cpu::shuffle(mask, value, source < pgas::cpu::segment(lane, width) ? lane : source);
}
template <class T> inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const int lane = int(pgas::cpu::self->lane), source = lane + int(delta);
  return pgas::cpu::shuffle(mask, value, source >= pgas::cpu::segment(lane, width) + width ? lane : source);
}
template <class T> inline T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32) {
  const int lane = int(pgas::cpu::self->lane), source = lane ^ lane_mask;
  return pgas::cpu::shuffle(mask, value, source >= pgas::cpu::segment(lane, width) + width ? lane : source);
}

inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return unsigned(pgas::cpu::exchange(pgas::cpu::Warp::ballot, mask, predicate != 0));
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate == 0) == 0; }
inline int __uni_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate) == 0 || __all_sync(mask, predicate);
}
template <class T> inline unsigned __match_any_sync(unsigned mask, T value) {
  unsigned long long bits = 0;
  memcpy(&bits, &value, sizeof value);
  return unsigned(pgas::cpu::exchange(pgas::cpu::Warp::match, mask, bits));
}
template <class T> inline unsigned __match_all_sync(unsigned mask, T value, int *predicate) {
  const unsigned same = __match_any_sync(mask, value);
  *predicate = __all_sync(mask, same == mask);
  return *predicate ? mask : 0;
}
#define PGAS_REDUCE_SYNC(name, kind)                                                                                  \
  inline unsigned __reduce_##name##_sync(unsigned mask, unsigned value) {                                             \
    return unsigned(pgas::cpu::exchange(pgas::cpu::Warp::kind, mask, value));                                         \
  }                                                                                                                   \
  inline int __reduce_##name##_sync(unsigned mask, int value) {                                                       \
    return int(pgas::cpu::exchange(pgas::cpu::Warp::kind, mask, (unsigned long long)(long long)value, 0, true));      \
  }
PGAS_REDUCE_SYNC(add, add)
PGAS_REDUCE_SYNC(min, min)
PGAS_REDUCE_SYNC(max, max)
#undef PGAS_REDUCE_SYNC
inline unsigned __reduce_and_sync(unsigned mask, unsigned v) { return unsigned(pgas::cpu::exchange(pgas::cpu::Warp::and_, mask, v)); }
inline unsigned __reduce_or_sync(unsigned mask, unsigned v) { return unsigned(pgas::cpu::exchange(pgas::cpu::Warp::or_, mask, v)); }
inline unsigned __reduce_xor_sync(unsigned mask, unsigned v) { return unsigned(pgas::cpu::exchange(pgas::cpu::Warp::xor_, mask, v)); }
