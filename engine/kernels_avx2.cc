// This file is compiled for AVX2 and FMA. kernels_inl.h says which headers may be included here.
#include <immintrin.h>

#include <cstdint>

namespace disttrain::workerd {
namespace {

// A table for all subsets of 8 elements. Bit p of the index `set` says whether element p is in the subset. The bytes of
// positions[set], from the lowest to the highest, are the numbers of the elements in the subset, in ascending order.
struct CompressTable {
  std::uint64_t positions[256];
};

constexpr CompressTable make_compress_table() {
  CompressTable table{};
  for (unsigned set = 0; set < 256; ++set) {
    int size = 0;
    for (unsigned position = 0; position < 8; ++position)
      if ((set >> position & 1U) != 0) table.positions[set] |= std::uint64_t{position} << (8 * size++);
  }
  return table;
}

constexpr CompressTable kCompressTable = make_compress_table();

struct Vec {
  using Value = __m256;
  struct Mask {
    __m256i lanes;
    std::int64_t elements;
  };
  static constexpr std::int64_t kWidth = 8;

  // A mask of the first `elements` elements of a vector; `elements` is 1 .. kWidth.
  static Mask mask(std::int64_t elements) {
    const __m256i positions = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return {_mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(elements)), positions), elements};
  }
  static Value zero() { return _mm256_setzero_ps(); }
  static Value load(const float* from) { return _mm256_loadu_ps(from); }
  static Value load(const float* from, const Mask& mask) { return _mm256_maskload_ps(from, mask.lanes); }
  static Value broadcast(const float* from) { return _mm256_broadcast_ss(from); }
  static void store(float* to, Value value) { _mm256_storeu_ps(to, value); }
  // Stores the elements in groups of 4, 2 and 1, because the instruction for masked stores (vmaskmovps) takes 42
  // operations on Zen.
  static void store(float* to, Value value, const Mask& mask) {
    if (mask.elements == kWidth) return _mm256_storeu_ps(to, value);
    __m128 left = _mm256_castps256_ps128(value);
    if ((mask.elements & 4) != 0) {
      _mm_storeu_ps(to, left);
      left = _mm256_extractf128_ps(value, 1);
      to += 4;
    }
    if ((mask.elements & 2) != 0) {
      _mm_storel_pi(reinterpret_cast<__m64*>(to), left);
      left = _mm_movehl_ps(left, left);
      to += 2;
    }
    if ((mask.elements & 1) != 0) _mm_store_ss(to, left);
  }
  static Value fma(Value a, Value b, Value c) { return _mm256_fmadd_ps(a, b, c); }
  // Writes the nonzero elements of `value` to `values`. Adds `first` to the indices of these elements, and writes the
  // sums to `positions`. Returns the number of nonzero elements. Always writes a whole vector to both arrays.
  static std::int64_t compress_nonzeros(Value value, std::uint32_t first, float* values, std::uint32_t* positions) {
    const int set = _mm256_movemask_ps(_mm256_cmp_ps(value, _mm256_setzero_ps(), _CMP_NEQ_UQ));
    const __m128i packed = _mm_cvtsi64_si128(static_cast<long long>(kCompressTable.positions[set]));
    const __m256i order = _mm256_cvtepu8_epi32(packed);
    _mm256_storeu_ps(values, _mm256_permutevar8x32_ps(value, order));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(positions),
                        _mm256_add_epi32(order, _mm256_set1_epi32(static_cast<int>(first))));
    return __builtin_popcount(static_cast<unsigned>(set));
  }
  // For each of kWidth columns, 32 bits that say which of 32 rows have a nonzero value there. The argument `row` of
  // mark_nonzeros() has one bit set: the bit of the row to which `value` belongs.
  using Bits = __m256i;
  static Bits no_bits() { return _mm256_setzero_si256(); }
  static Bits mark_nonzeros(Bits bits, Value value, std::uint32_t row) {
    const __m256i set = _mm256_castps_si256(_mm256_cmp_ps(value, _mm256_setzero_ps(), _CMP_NEQ_UQ));
    return _mm256_or_si256(bits, _mm256_and_si256(set, _mm256_set1_epi32(static_cast<int>(row))));
  }
  static void store_bits(std::uint32_t* to, Bits bits) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), bits); }
  static float sum(Value value) {
    const __m128 half = _mm_add_ps(_mm256_castps256_ps128(value), _mm256_extractf128_ps(value, 1));
    const __m128 quarter = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(quarter, _mm_movehdup_ps(quarter)));
  }
};

}  // namespace
}  // namespace disttrain::workerd

#include "engine/kernels_inl.h"

namespace disttrain::workerd {

const Kernels& avx2_kernels() {
  static constexpr Kernels kKernels = kernels_named("avx2");
  return kKernels;
}

}  // namespace disttrain::workerd
