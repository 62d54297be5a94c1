// Compiled for AVX2 and FMA. See the note in kernels_inl.h on what may be included here.
#include <immintrin.h>

#include <cstdint>

namespace disttrain::workerd {
namespace {

struct Vec {
  using Value = __m256;
  using Mask = __m256i;
  static constexpr std::int64_t kWidth = 8;

  // The first `elements` of a vector, 1 .. kWidth.
  static Mask mask(std::int64_t elements) {
    const __m256i positions = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(elements)), positions);
  }
  static Value zero() { return _mm256_setzero_ps(); }
  static Value load(const float* from) { return _mm256_loadu_ps(from); }
  static Value load(const float* from, Mask mask) { return _mm256_maskload_ps(from, mask); }
  static Value broadcast(const float* from) { return _mm256_broadcast_ss(from); }
  static void store(float* to, Value value) { _mm256_storeu_ps(to, value); }
  static void store(float* to, Value value, Mask mask) { _mm256_maskstore_ps(to, mask, value); }
  static Value fma(Value a, Value b, Value c) { return _mm256_fmadd_ps(a, b, c); }
  static float sum(Value value) {
    const __m128 half = _mm_add_ps(_mm256_castps256_ps128(value), _mm256_extractf128_ps(value, 1));
    const __m128 quarter = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(quarter, _mm_movehdup_ps(quarter)));
  }
};

}  // namespace
}  // namespace disttrain::workerd

#include "workerd/compute/kernels_inl.h"

namespace disttrain::workerd {

const Kernels& avx2_kernels() {
  static constexpr Kernels kKernels = kernels_named("avx2");
  return kKernels;
}

}  // namespace disttrain::workerd
