// This file is compiled for AVX-512F. kernels_inl.h says which headers may be included here.
#include <immintrin.h>

#include <cstdint>

namespace disttrain::workerd {
namespace {

struct Vec {
  using Value = __m512;
  using Mask = __mmask16;
  static constexpr std::int64_t kWidth = 16;

  // A mask of the first `elements` elements of a vector; `elements` is 1 .. kWidth.
  static Mask mask(std::int64_t elements) { return static_cast<Mask>((1U << elements) - 1U); }
  static Value zero() { return _mm512_setzero_ps(); }
  static Value load(const float* from) { return _mm512_loadu_ps(from); }
  static Value load(const float* from, Mask mask) { return _mm512_maskz_loadu_ps(mask, from); }
  static Value broadcast(const float* from) { return _mm512_set1_ps(*from); }
  static void store(float* to, Value value) { _mm512_storeu_ps(to, value); }
  static void store(float* to, Value value, Mask mask) { _mm512_mask_storeu_ps(to, mask, value); }
  static Value fma(Value a, Value b, Value c) { return _mm512_fmadd_ps(a, b, c); }
  // Writes the nonzero elements of `value` to `values`. Adds `first` to the indices of these elements, and writes the
  // sums to `positions`. Returns the number of nonzero elements. Always writes a whole vector to both arrays.
  static std::int64_t compress_nonzeros(Value value, std::uint32_t first, float* values, std::uint32_t* positions) {
    const __mmask16 set = _mm512_cmp_ps_mask(value, _mm512_setzero_ps(), _CMP_NEQ_UQ);
    const __m512i numbers = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    // Compresses in a register and then stores, because the instruction that compresses to memory is slow on Zen 4.
    _mm512_storeu_ps(values, _mm512_maskz_compress_ps(set, value));
    _mm512_storeu_si512(positions, _mm512_maskz_compress_epi32(
                                       set, _mm512_add_epi32(numbers, _mm512_set1_epi32(static_cast<int>(first)))));
    return __builtin_popcount(set);
  }
  // For each of kWidth columns, 32 bits that say which of 32 rows have a nonzero value there. The argument `row` of
  // mark_nonzeros() has one bit set: the bit of the row to which `value` belongs.
  using Bits = __m512i;
  static Bits no_bits() { return _mm512_setzero_si512(); }
  static Bits mark_nonzeros(Bits bits, Value value, std::uint32_t row) {
    const __mmask16 set = _mm512_cmp_ps_mask(value, _mm512_setzero_ps(), _CMP_NEQ_UQ);
    return _mm512_mask_or_epi32(bits, set, bits, _mm512_set1_epi32(static_cast<int>(row)));
  }
  static void store_bits(std::uint32_t* to, Bits bits) { _mm512_storeu_si512(to, bits); }
  // Adds the upper half to the lower half until one element is left. It doesn't use _mm512_reduce_add_ps because g++ 12
  // prints a warning about that function.
  static float sum(Value value) {
    alignas(64) float parts[kWidth];
    _mm512_store_ps(parts, value);
    for (std::int64_t half = kWidth / 2; half > 0; half /= 2)
      for (std::int64_t i = 0; i < half; ++i) parts[i] += parts[i + half];
    return parts[0];
  }
};

}  // namespace
}  // namespace disttrain::workerd

#include "engine/kernels_inl.h"

namespace disttrain::workerd {

const Kernels& avx512_kernels() {
  static constexpr Kernels kKernels = kernels_named("avx512");
  return kKernels;
}

}  // namespace disttrain::workerd
