// The kernels of kernels.h over a vector type, `Vec`, that the file which includes this one defines before it. Such a
// file is compiled for its instruction set and includes nothing with inline functions of others (the linker might keep
// a copy that other machines can't run); all here is in an unnamed namespace for the same reason.
#include "workerd/compute/kernels.h"

namespace disttrain::workerd {
namespace {

constexpr std::int64_t kWidth = Vec::kWidth;
// A tile of packed values stays in half of an L1 cache of 32 KiB.
constexpr std::int64_t kTileElements = 5120;
// With many rows the narrowest tile needs more.
constexpr std::int64_t kTileRoom = kMaxKernelRows * 4 * kWidth;
static_assert(kTileRoom >= kTileElements);

inline std::int64_t smaller(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}

// c[0..I, 0..J vectors] = start + sum over k of a[i * a_row + k * a_k] * b[k * b_stride + ...]; the last vector has
// `mask` elements if Masked. start: bias or zero.
template <int I, int J, bool Masked>
inline void product_tile(const float* a, std::int64_t a_row, std::int64_t a_k, std::int64_t inner, const float* b,
                         std::int64_t b_stride, const float* bias, float* c, std::int64_t c_stride, Vec::Mask mask) {
  Vec::Value sums[I][J];
  for (int j = 0; j < J; ++j) {
    Vec::Value start = Vec::zero();
    if (bias != nullptr)
      start = Masked && j == J - 1 ? Vec::load(bias + j * kWidth, mask) : Vec::load(bias + j * kWidth);
    for (int i = 0; i < I; ++i) sums[i][j] = start;
  }
  for (std::int64_t k = 0; k < inner; ++k) {
    Vec::Value row[J];
    for (int j = 0; j < J; ++j)
      row[j] = Masked && j == J - 1 ? Vec::load(b + k * b_stride + j * kWidth, mask)
                                    : Vec::load(b + k * b_stride + j * kWidth);
    for (int i = 0; i < I; ++i) {
      const Vec::Value factor = Vec::broadcast(a + i * a_row + k * a_k);
      for (int j = 0; j < J; ++j) sums[i][j] = Vec::fma(factor, row[j], sums[i][j]);
    }
  }
  for (int i = 0; i < I; ++i)
    for (int j = 0; j < J; ++j) {
      float* to = c + i * c_stride + j * kWidth;
      if (Masked && j == J - 1)
        Vec::store(to, sums[i][j], mask);
      else
        Vec::store(to, sums[i][j]);
    }
}

// product_tile for any number of columns.
template <int I>
inline void product_rows(const float* a, std::int64_t a_row, std::int64_t a_k, std::int64_t inner, const float* b,
                         std::int64_t b_stride, const float* bias, float* c, std::int64_t c_stride,
                         std::int64_t columns) {
  const Vec::Mask all = Vec::mask(kWidth);
  std::int64_t o = 0;
  for (; o + 4 * kWidth <= columns; o += 4 * kWidth)
    product_tile<I, 4, false>(a, a_row, a_k, inner, b + o, b_stride, bias == nullptr ? bias : bias + o, c + o, c_stride,
                              all);
  const std::int64_t left = columns - o;
  if (left == 0) return;
  const float* bias_left = bias == nullptr ? bias : bias + o;
  const std::int64_t vectors = (left + kWidth - 1) / kWidth;
  const Vec::Mask mask = Vec::mask(left - (vectors - 1) * kWidth);
  if (vectors == 1)
    product_tile<I, 1, true>(a, a_row, a_k, inner, b + o, b_stride, bias_left, c + o, c_stride, mask);
  else if (vectors == 2)
    product_tile<I, 2, true>(a, a_row, a_k, inner, b + o, b_stride, bias_left, c + o, c_stride, mask);
  else if (vectors == 3)
    product_tile<I, 3, true>(a, a_row, a_k, inner, b + o, b_stride, bias_left, c + o, c_stride, mask);
  else
    product_tile<I, 4, true>(a, a_row, a_k, inner, b + o, b_stride, bias_left, c + o, c_stride, mask);
}

// Copies b[rows, columns] into a dense tile: rows a power of two apart would share their cache sets.
inline void pack(const float* from, std::int64_t stride, std::int64_t rows, std::int64_t columns, float* tile) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t o = 0; o < columns; ++o) tile[r * columns + o] = from[r * stride + o];
}

inline std::int64_t tile_columns(std::int64_t rows, std::int64_t columns) {
  const std::int64_t fitting = kTileElements / rows / (4 * kWidth) * (4 * kWidth);
  return smaller(columns, fitting < 4 * kWidth ? 4 * kWidth : fitting);
}

void weight_gradient_few_rows(const DenseShape& shape, const float* x, const float* d_y, float* d_w, Range range) {
  const auto [rows, inputs, outputs] = shape;
  alignas(64) float tile[kTileRoom];
  float factors[kMaxKernelRows * 3];
  const std::int64_t block = tile_columns(rows, outputs);
  for (std::int64_t o = 0; o < outputs; o += block) {
    const std::int64_t columns = smaller(block, outputs - o);
    pack(d_y + o, outputs, rows, columns, tile);
    for (std::int64_t i = range.begin; i < range.end; i += 3) {
      const std::int64_t group = smaller(3, range.end - i);
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t g = 0; g < group; ++g) factors[r * 3 + g] = x[r * inputs + i + g];
      float* to = d_w + i * outputs + o;
      if (group == 3)
        product_rows<3>(factors, 1, 3, rows, tile, columns, nullptr, to, outputs, columns);
      else if (group == 2)
        product_rows<2>(factors, 1, 3, rows, tile, columns, nullptr, to, outputs, columns);
      else
        product_rows<1>(factors, 1, 3, rows, tile, columns, nullptr, to, outputs, columns);
    }
  }
}

void forward_narrow(const DenseShape& shape, const float* x, const float* w, const float* b, float* y, Range range) {
  const std::int64_t inputs = shape.inputs;
  const std::int64_t outputs = shape.outputs;
  std::int64_t r = range.begin;
  for (; r + 5 <= range.end; r += 5)
    product_rows<5>(x + r * inputs, inputs, 1, inputs, w, outputs, b, y + r * outputs, outputs, outputs);
  for (; r < range.end; ++r)
    product_rows<1>(x + r * inputs, inputs, 1, inputs, w, outputs, b, y + r * outputs, outputs, outputs);
}

// sums[R, columns] += x[R, K] w[K, columns], columns a multiple of the width; asks for w_next[.., columns] meanwhile.
template <int R, int K>
inline void axpy_rows(const float* x, std::int64_t x_stride, const float* w, std::int64_t w_stride, float* sums,
                      std::int64_t columns, const float* next) {
  Vec::Value factors[R][K];
  for (int r = 0; r < R; ++r)
    for (int k = 0; k < K; ++k) factors[r][k] = Vec::broadcast(x + r * x_stride + k);
  for (std::int64_t o = 0; o < columns; o += kWidth) {
    if (next != nullptr) __builtin_prefetch(next + o);
    Vec::Value totals[R];
    for (int r = 0; r < R; ++r) totals[r] = Vec::load(sums + r * columns + o);
    for (int k = 0; k < K; ++k) {
      const Vec::Value row = Vec::load(w + k * w_stride + o);
      for (int r = 0; r < R; ++r) totals[r] = Vec::fma(factors[r][k], row, totals[r]);
    }
    for (int r = 0; r < R; ++r) Vec::store(sums + r * columns + o, totals[r]);
  }
}

// Four rows of w at a time, kept in L1 while all rows of x meet them; y's part stays in L1 too.
void forward_few_rows(const DenseShape& shape, const float* x, const float* w, const float* b, float* y, Range range) {
  const auto [rows, inputs, outputs] = shape;
  constexpr std::int64_t kRows = 4;
  alignas(64) float sums[kTileRoom];
  const std::int64_t whole = range.begin + (range.end - range.begin) / kWidth * kWidth;
  const std::int64_t widest = tile_columns(rows, whole - range.begin);
  std::int64_t o = range.begin;
  for (std::int64_t block = widest; o < whole; o += block) {
    block = smaller(widest, whole - o);
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < block; ++c) sums[r * block + c] = b[o + c];
    std::int64_t i = 0;
    for (; i + kRows <= inputs; i += kRows) {
      const float* from = w + i * outputs + o;
      std::int64_t r = 0;
      for (; r + 2 <= rows; r += 2) {
        const bool ahead = r / 2 < kRows && i + 3 * kRows <= inputs;
        const float* next = ahead ? from + (2 * kRows + r / 2) * outputs : nullptr;
        axpy_rows<2, kRows>(x + r * inputs + i, inputs, from, outputs, sums + r * block, block, next);
      }
      for (; r < rows; ++r)
        axpy_rows<1, kRows>(x + r * inputs + i, inputs, from, outputs, sums + r * block, block, nullptr);
    }
    for (; i < inputs; ++i)
      for (std::int64_t r = 0; r < rows; ++r)
        axpy_rows<1, 1>(x + r * inputs + i, inputs, w + i * outputs + o, outputs, sums + r * block, block, nullptr);
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < block; ++c) y[r * outputs + o + c] = sums[r * block + c];
  }
  for (std::int64_t r = 0; o < range.end && r < rows; ++r)
    product_rows<1>(x + r * inputs, inputs, 1, inputs, w + o, outputs, b + o, y + r * outputs + o, outputs,
                    range.end - o);
}

// d_x[0..R, 0..I] += d_y[R, columns] . w[I, columns]
template <int R, int I>
inline void dot_rows(const float* d_y, std::int64_t d_stride, const float* w, std::int64_t w_stride,
                     std::int64_t columns, float* d_x, std::int64_t d_x_stride, const float* next) {
  Vec::Value sums[R][I];
  for (int r = 0; r < R; ++r)
    for (int i = 0; i < I; ++i) sums[r][i] = Vec::zero();
  std::int64_t o = 0;
  for (; o + kWidth <= columns; o += kWidth) {
    if (next != nullptr) __builtin_prefetch(next + o);
    Vec::Value rows[I];
    for (int i = 0; i < I; ++i) rows[i] = Vec::load(w + i * w_stride + o);
    for (int r = 0; r < R; ++r) {
      const Vec::Value gradient = Vec::load(d_y + r * d_stride + o);
      for (int i = 0; i < I; ++i) sums[r][i] = Vec::fma(gradient, rows[i], sums[r][i]);
    }
  }
  if (o < columns) {
    const Vec::Mask mask = Vec::mask(columns - o);
    Vec::Value rows[I];
    for (int i = 0; i < I; ++i) rows[i] = Vec::load(w + i * w_stride + o, mask);
    for (int r = 0; r < R; ++r) {
      const Vec::Value gradient = Vec::load(d_y + r * d_stride + o, mask);
      for (int i = 0; i < I; ++i) sums[r][i] = Vec::fma(gradient, rows[i], sums[r][i]);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int i = 0; i < I; ++i) d_x[r * d_x_stride + i] += Vec::sum(sums[r][i]);
}

template <int I>
inline void dot_all_rows(std::int64_t rows, const float* tile, const float* w, std::int64_t w_stride,
                         std::int64_t columns, float* d_x, std::int64_t d_x_stride, const float* next) {
  std::int64_t r = 0;
  for (; r + 5 <= rows; r += 5) {
    const float* ahead = next != nullptr && r / 5 < I ? next + r / 5 * w_stride : nullptr;
    dot_rows<5, I>(tile + r * columns, columns, w, w_stride, columns, d_x + r * d_x_stride, d_x_stride, ahead);
  }
  for (; r < rows; ++r)
    dot_rows<1, I>(tile + r * columns, columns, w, w_stride, columns, d_x + r * d_x_stride, d_x_stride, nullptr);
}

void input_gradient_few_rows(const DenseShape& shape, const float* d_y, const float* w, float* d_x, Range range) {
  const auto [rows, inputs, outputs] = shape;
  alignas(64) float tile[kTileRoom];
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t i = range.begin; i < range.end; ++i) d_x[r * inputs + i] = 0.0F;
  const std::int64_t block = tile_columns(rows, outputs);
  for (std::int64_t o = 0; o < outputs; o += block) {
    const std::int64_t columns = smaller(block, outputs - o);
    pack(d_y + o, outputs, rows, columns, tile);
    std::int64_t i = range.begin;
    for (; i + 2 <= range.end; i += 2) {
      const float* next = i + 8 <= range.end ? w + (i + 6) * outputs + o : nullptr;
      dot_all_rows<2>(rows, tile, w + i * outputs + o, outputs, columns, d_x + i, inputs, next);
    }
    for (; i < range.end; ++i)
      dot_all_rows<1>(rows, tile, w + i * outputs + o, outputs, columns, d_x + i, inputs, nullptr);
  }
}

std::int64_t sparse_collect(std::int64_t rows, std::int64_t columns, const float* x, std::int64_t most,
                            std::uint32_t* found_columns, float* values, std::uint32_t* begins) {
  const Vec::Mask all = Vec::mask(kWidth);
  std::int64_t found = 0;
  for (std::int64_t group = 0; group < columns; group += kSparseGroup) {
    const std::int64_t end = smaller(columns, group + kSparseGroup);
    for (std::int64_t row = 0; row < rows; ++row) {
      if (found > most) return found;
      *begins++ = static_cast<std::uint32_t>(found);
      // No branch on what is found: at the edges of a digit it would be guessed wrong each time.
      for (std::int64_t column = group; column < end; column += kWidth) {
        const Vec::Mask mask = column + kWidth <= end ? all : Vec::mask(end - column);
        found += Vec::compress_nonzeros(Vec::load(x + row * columns + column, mask), static_cast<std::uint32_t>(column),
                                        values + found, found_columns + found);
      }
    }
  }
  *begins = static_cast<std::uint32_t>(found);
  return found;
}

// Entries of one row in one group.
struct SparseRun {
  const std::uint32_t* columns;
  const float* values;
  std::int64_t size;
};

inline SparseRun run_of(const SparseView& x, std::int64_t group, std::int64_t row) {
  const std::uint32_t* begins = x.begins + group * x.rows + row;
  return {x.found_columns + begins[0], x.values + begins[0], begins[1] - begins[0]};
}

// A group's part of a weight, packed: 8 vectors per column at most, each aligned, where a row of the flat array would
// have every second or each vector on two cache lines.
constexpr std::int64_t kSparseTile = kSparseGroup * 8 * kWidth;

// sums[J vectors] += the run's values times the tile's rows
template <int J>
inline void sparse_gather(const SparseRun& run, const float* tile, float* to, Vec::Mask mask) {
  Vec::Value sums[J];
  for (int j = 0; j < J; ++j) sums[j] = j == J - 1 ? Vec::load(to + j * kWidth, mask) : Vec::load(to + j * kWidth);
  for (std::int64_t e = 0; e < run.size; ++e) {
    const Vec::Value factor = Vec::broadcast(run.values + e);
    const float* row = tile + run.columns[e] % kSparseGroup * (J * kWidth);
    for (int j = 0; j < J; ++j) sums[j] = Vec::fma(factor, Vec::load(row + j * kWidth), sums[j]);
  }
  for (int j = 0; j + 1 < J; ++j) Vec::store(to + j * kWidth, sums[j]);
  Vec::store(to + (J - 1) * kWidth, sums[J - 1], mask);
}

// The tile's rows += the run's values times from[J vectors]
template <int J>
inline void sparse_scatter(const SparseRun& run, const float* from, float* tile, Vec::Mask mask) {
  Vec::Value factors[J];
  for (int j = 0; j < J; ++j)
    factors[j] = j == J - 1 ? Vec::load(from + j * kWidth, mask) : Vec::load(from + j * kWidth);
  for (std::int64_t e = 0; e < run.size; ++e) {
    const Vec::Value value = Vec::broadcast(run.values + e);
    float* row = tile + run.columns[e] % kSparseGroup * (J * kWidth);
    for (int j = 0; j < J; ++j) Vec::store(row + j * kWidth, Vec::fma(value, factors[j], Vec::load(row + j * kWidth)));
  }
}

using SparseGather = void (*)(const SparseRun&, const float*, float*, Vec::Mask);
using SparseScatter = void (*)(const SparseRun&, const float*, float*, Vec::Mask);
constexpr SparseGather kGathers[] = {sparse_gather<1>, sparse_gather<2>, sparse_gather<3>, sparse_gather<4>,
                                     sparse_gather<5>, sparse_gather<6>, sparse_gather<7>, sparse_gather<8>};
constexpr SparseScatter kScatters[] = {sparse_scatter<1>, sparse_scatter<2>, sparse_scatter<3>, sparse_scatter<4>,
                                       sparse_scatter<5>, sparse_scatter<6>, sparse_scatter<7>, sparse_scatter<8>};

// Columns in equal parts of at most 8 vectors, which stay in registers.
struct Part {
  std::int64_t begin;
  std::int64_t vectors;
  Vec::Mask mask;  // of the last vector
};

inline std::int64_t count_parts(std::int64_t columns) {
  return (columns + 8 * kWidth - 1) / (8 * kWidth);
}

inline Part part_of(std::int64_t columns, std::int64_t part) {
  const std::int64_t vectors = (columns + kWidth - 1) / kWidth;
  const std::int64_t parts = count_parts(columns);
  const std::int64_t first = vectors * part / parts;
  const std::int64_t last = vectors * (part + 1) / parts;
  return {first * kWidth, last - first, Vec::mask(smaller(columns - (last - 1) * kWidth, kWidth))};
}

// Between rows of the flat array and a tile; the last vector has mask's elements.
inline void to_tile(const float* rows, std::int64_t stride, std::int64_t count, const Part& part, float* tile) {
  for (std::int64_t i = 0; i < count; ++i, rows += stride, tile += part.vectors * kWidth) {
    for (std::int64_t j = 0; j + 1 < part.vectors; ++j) Vec::store(tile + j * kWidth, Vec::load(rows + j * kWidth));
    const std::int64_t last = (part.vectors - 1) * kWidth;
    Vec::store(tile + last, Vec::load(rows + last, part.mask));
  }
}

inline void from_tile(const float* tile, std::int64_t stride, std::int64_t count, const Part& part, float* rows) {
  for (std::int64_t i = 0; i < count; ++i, rows += stride, tile += part.vectors * kWidth) {
    for (std::int64_t j = 0; j + 1 < part.vectors; ++j) Vec::store(rows + j * kWidth, Vec::load(tile + j * kWidth));
    const std::int64_t last = (part.vectors - 1) * kWidth;
    Vec::store(rows + last, Vec::load(tile + last), part.mask);
  }
}

void sparse_forward(const SparseView& x, std::int64_t outputs, const float* w, const float* b, float* y, Range range) {
  alignas(64) float tile[kSparseTile];
  for (std::int64_t r = range.begin; r < range.end; ++r)
    for (std::int64_t o = 0; o < outputs; ++o) y[r * outputs + o] = b[o];
  for (std::int64_t p = 0; p < count_parts(outputs); ++p) {
    const Part part = part_of(outputs, p);
    const SparseGather gather = kGathers[part.vectors - 1];
    for (std::int64_t g = 0; g * kSparseGroup < x.columns; ++g) {
      const std::int64_t size = smaller(kSparseGroup, x.columns - g * kSparseGroup);
      to_tile(w + g * kSparseGroup * outputs + part.begin, outputs, size, part, tile);
      for (std::int64_t r = range.begin; r < range.end; ++r)
        gather(run_of(x, g, r), tile, y + r * outputs + part.begin, part.mask);
    }
  }
}

void sparse_weight_gradient(const SparseView& x, std::int64_t outputs, const float* d_y, float* d_w, Range range) {
  alignas(64) float tile[kSparseTile];
  for (std::int64_t g = range.begin; g < range.end; ++g) {
    const std::int64_t size = smaller(kSparseGroup, x.columns - g * kSparseGroup);
    for (std::int64_t p = 0; p < count_parts(outputs); ++p) {
      const Part part = part_of(outputs, p);
      const SparseScatter scatter = kScatters[part.vectors - 1];
      for (std::int64_t e = 0; e < size * part.vectors * kWidth; ++e) tile[e] = 0.0F;
      for (std::int64_t r = 0; r < x.rows; ++r)
        scatter(run_of(x, g, r), d_y + r * outputs + part.begin, tile, part.mask);
      from_tile(tile, outputs, size, part, d_w + g * kSparseGroup * outputs + part.begin);
    }
  }
}

constexpr Kernels kernels_named(const char* name) {
  return {name,           forward_few_rows, input_gradient_few_rows, weight_gradient_few_rows,
          forward_narrow, sparse_collect,   sparse_forward,          sparse_weight_gradient};
}

}  // namespace
}  // namespace disttrain::workerd
