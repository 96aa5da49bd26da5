// SPDX-License-Identifier: Apache-2.0
// From a type code to a type: calls f(Of<T>{}) with the C++ type of the code.
#pragma once

#include "pypgas/raw.cuh"

namespace pgas {
namespace entry {

template <class T> struct Of { typedef T type; };

template <class F> PGAS_FN auto with_type(DType code, F f) {
  switch (code) {
  case DType::i8: return f(Of<int8_t>{});
  case DType::i16: return f(Of<int16_t>{});
  case DType::i32: return f(Of<int32_t>{});
  case DType::i64: return f(Of<int64_t>{});
  case DType::u8: return f(Of<uint8_t>{});
  case DType::u16: return f(Of<uint16_t>{});
  case DType::u32: return f(Of<uint32_t>{});
  case DType::u64: return f(Of<uint64_t>{});
  case DType::f16: return f(Of<half>{});
  case DType::bf16: return f(Of<bfloat16>{});
  case DType::f32: return f(Of<float>{});
  case DType::f64: return f(Of<double>{});
  case DType::c64: return f(Of<complex64>{});
  case DType::c128: return f(Of<complex128>{});
  default: return f(Of<bool8>{});
  }
}

} // namespace entry
} // namespace pgas
