// The kernels of kernels.h. A file that includes this header first defines the vector type `Vec`.
//
// Such a file is compiled for one instruction set. It must not include other headers with inline functions: if several
// files compile the same inline function, the linker keeps one copy, and that copy might have instructions that the
// machine lacks. For the same reason everything here is in an unnamed namespace.
#include <utility>

#include "engine/kernels.h"

#define DISTTRAIN_INLINE __attribute__((always_inline))

namespace disttrain::workerd {
namespace {

using Value = Vec::Value;
using Mask = Vec::Mask;
constexpr std::int64_t kWidth = Vec::kWidth;
// A tile is a block of a matrix, copied to a small dense array. This many floats (20 KiB) fit into an L1 cache of 32
// KiB beside other data.
constexpr std::int64_t kTileElements = 5120;
// The room for a tile. A tile has at least 4 vectors per row, so with many rows it may exceed kTileElements.
constexpr std::int64_t kTileRoom = kMaxKernelRows * 4 * kWidth;
static_assert(kTileRoom >= kTileElements);

inline std::int64_t smaller(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}

// Calls body(0), body(1), ... body(N - 1) with compile-time constants. With an ordinary loop the code takes twice as
// long: g++ 12 unrolls the loop too late and keeps the array of sums in memory instead of in registers.
template <int N, typename Body>
DISTTRAIN_INLINE inline void each(const Body& body) {
  [&]<int... I>(std::integer_sequence<int, I...>) DISTTRAIN_INLINE {
    (body(std::integral_constant<int, I>{}), ...);
  }
  (std::make_integer_sequence<int, N>{});
}

// J neighbouring vectors of a row of a matrix. The row may end within the last vector. Then `mask` selects the
// elements of this vector that belong to the row, and load() and store() skip its other elements.
template <int J>
struct Row {
  Value vectors[J];

  DISTTRAIN_INLINE static Row zero() {
    Row row;
    each<J>([&](auto j) DISTTRAIN_INLINE { row.vectors[j] = Vec::zero(); });
    return row;
  }
  DISTTRAIN_INLINE static Row load(const float* from) {
    Row row;
    each<J>([&](auto j) DISTTRAIN_INLINE { row.vectors[j] = Vec::load(from + j * kWidth); });
    return row;
  }
  DISTTRAIN_INLINE static Row load(const float* from, const Mask& mask) {
    Row row;
    each<J - 1>([&](auto j) DISTTRAIN_INLINE { row.vectors[j] = Vec::load(from + j * kWidth); });
    row.vectors[J - 1] = Vec::load(from + (J - 1) * kWidth, mask);
    return row;
  }
  DISTTRAIN_INLINE void store(float* to) const {
    each<J>([&](auto j) DISTTRAIN_INLINE { Vec::store(to + j * kWidth, vectors[j]); });
  }
  DISTTRAIN_INLINE void store(float* to, const Mask& mask) const {
    each<J - 1>([&](auto j) DISTTRAIN_INLINE { Vec::store(to + j * kWidth, vectors[j]); });
    Vec::store(to + (J - 1) * kWidth, vectors[J - 1], mask);
  }
  // this += factor * other
  DISTTRAIN_INLINE void add(Value factor, const Row& other) {
    each<J>([&](auto j) DISTTRAIN_INLINE { vectors[j] = Vec::fma(factor, other.vectors[j], vectors[j]); });
  }
  // this += factor * (the J vectors at `other`)
  DISTTRAIN_INLINE void add(Value factor, const float* other) {
    each<J>([&](auto j) DISTTRAIN_INLINE { vectors[j] = Vec::fma(factor, Vec::load(other + j * kWidth), vectors[j]); });
  }
};

// The left matrix of a product: its element (i, k) is a[i * a_row + k * a_k], and k goes from 0 to inner - 1.
struct Left {
  const float* a;
  std::int64_t a_row;
  std::int64_t a_k;
  std::int64_t inner;
};

// Computes I rows and J vectors of columns of c = left b + bias. `bias` may be nullptr.
template <int I, int J, bool Masked>
inline void product_tile(const Left& left, const float* b, std::int64_t b_stride, const float* bias, float* c,
                         std::int64_t c_stride, const Mask& mask) {
  const auto load = [&mask](const float* from)
                        DISTTRAIN_INLINE { return Masked ? Row<J>::load(from, mask) : Row<J>::load(from); };
  const Row<J> start = bias == nullptr ? Row<J>::zero() : load(bias);
  Row<J> sums[I];
  each<I>([&](auto i) DISTTRAIN_INLINE { sums[i] = start; });
  for (std::int64_t k = 0; k < left.inner; ++k) {
    const Row<J> row = load(b + k * b_stride);
    const float* factors = left.a + k * left.a_k;
    each<I>([&](auto i) DISTTRAIN_INLINE { sums[i].add(Vec::broadcast(factors + i * left.a_row), row); });
  }
  each<I>([&](auto i) DISTTRAIN_INLINE {
    if constexpr (Masked)
      sums[i].store(c + i * c_stride, mask);
    else
      sums[i].store(c + i * c_stride);
  });
}

// The same as product_tile, for any number of columns.
template <int I>
inline void product_rows(const Left& left, const float* b, std::int64_t b_stride, const float* bias, float* c,
                         std::int64_t c_stride, std::int64_t columns) {
  const Mask all = Vec::mask(kWidth);
  std::int64_t o = 0;
  for (; o + 4 * kWidth <= columns; o += 4 * kWidth)
    product_tile<I, 4, false>(left, b + o, b_stride, bias == nullptr ? bias : bias + o, c + o, c_stride, all);
  if (o == columns) return;
  const float* bias_left = bias == nullptr ? bias : bias + o;
  const std::int64_t vectors = (columns - o + kWidth - 1) / kWidth;
  const Mask mask = Vec::mask(columns - o - (vectors - 1) * kWidth);
  if (vectors == 1)
    product_tile<I, 1, true>(left, b + o, b_stride, bias_left, c + o, c_stride, mask);
  else if (vectors == 2)
    product_tile<I, 2, true>(left, b + o, b_stride, bias_left, c + o, c_stride, mask);
  else if (vectors == 3)
    product_tile<I, 3, true>(left, b + o, b_stride, bias_left, c + o, c_stride, mask);
  else
    product_tile<I, 4, true>(left, b + o, b_stride, bias_left, c + o, c_stride, mask);
}

// Copies a block of a matrix into a dense tile. Without the copy, rows whose stride is a power of two would evict each
// other from the cache.
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
      const Left left{factors, 1, 3, rows};
      float* to = d_w + i * outputs + o;
      if (group == 3)
        product_rows<3>(left, tile, columns, nullptr, to, outputs, columns);
      else if (group == 2)
        product_rows<2>(left, tile, columns, nullptr, to, outputs, columns);
      else
        product_rows<1>(left, tile, columns, nullptr, to, outputs, columns);
    }
  }
}

void bias_gradient(const DenseShape& shape, const float* d_y, float* d_b) {
  const float one = 1.0F;
  product_rows<1>({&one, 0, 0, shape.rows}, d_y, shape.outputs, nullptr, d_b, shape.outputs, shape.outputs);
}

void forward_narrow(const DenseShape& shape, const float* x, const float* w, const float* b, float* y, Range range) {
  const std::int64_t inputs = shape.inputs;
  const std::int64_t outputs = shape.outputs;
  std::int64_t r = range.begin;
  for (; r + 5 <= range.end; r += 5)
    product_rows<5>({x + r * inputs, inputs, 1, inputs}, w, outputs, b, y + r * outputs, outputs, outputs);
  for (; r < range.end; ++r)
    product_rows<1>({x + r * inputs, inputs, 1, inputs}, w, outputs, b, y + r * outputs, outputs, outputs);
}

// sums[R, columns] += x[R, K] w[K, columns], where `columns` is a multiple of kWidth. Also prefetches `next`, the row
// of w that is needed later; nullptr for none.
template <int R, int K>
inline void axpy_rows(const float* x, std::int64_t x_stride, const float* w, std::int64_t w_stride, float* sums,
                      std::int64_t stride, std::int64_t columns, const float* next) {
  Value factors[R][K];
  each<R>([&](auto r) DISTTRAIN_INLINE {
    each<K>([&](auto k) DISTTRAIN_INLINE { factors[r][k] = Vec::broadcast(x + r * x_stride + k); });
  });
  for (std::int64_t o = 0; o < columns; o += kWidth) {
    if (next != nullptr) __builtin_prefetch(next + o);
    Value totals[R];
    each<R>([&](auto r) DISTTRAIN_INLINE { totals[r] = Vec::load(sums + r * stride + o); });
    each<K>([&](auto k) DISTTRAIN_INLINE {
      const Value row = Vec::load(w + k * w_stride + o);
      each<R>([&](auto r) DISTTRAIN_INLINE { totals[r] = Vec::fma(factors[r][k], row, totals[r]); });
    });
    each<R>([&](auto r) DISTTRAIN_INLINE { Vec::store(sums + r * stride + o, totals[r]); });
  }
}

// Takes four rows of w at a time. While all rows of x are multiplied by them, these four rows and the sums stay in the
// L1 cache.
void forward_few_rows(const DenseShape& shape, const float* x, const float* w, const float* b, float* y, Range range,
                      Range part) {
  constexpr std::int64_t kRows = 4;
  const bool is_first = part.begin == 0;
  const auto [rows, inputs, outputs] = shape;
  alignas(64) float sums[kTileRoom + kMaxKernelRows * 2 * kWidth];
  const std::int64_t whole = range.begin + (range.end - range.begin) / kWidth * kWidth;
  const std::int64_t widest = tile_columns(rows, whole - range.begin);
  const std::int64_t stride = widest + 2 * kWidth;  // not a power of two
  std::int64_t o = range.begin;
  for (std::int64_t block = widest; o < whole; o += block) {
    block = smaller(widest, whole - o);
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < block; ++c) sums[r * stride + c] = is_first ? b[o + c] : y[r * outputs + o + c];
    std::int64_t i = part.begin;
    for (; i + kRows <= part.end; i += kRows) {
      const float* from = w + i * outputs + o;
      std::int64_t r = 0;
      for (; r + 2 <= rows; r += 2) {
        const bool ahead = r / 2 < kRows && i + 3 * kRows <= part.end;
        const float* next = ahead ? from + (2 * kRows + r / 2) * outputs : nullptr;
        axpy_rows<2, kRows>(x + r * inputs + i, inputs, from, outputs, sums + r * stride, stride, block, next);
      }
      for (; r < rows; ++r)
        axpy_rows<1, kRows>(x + r * inputs + i, inputs, from, outputs, sums + r * stride, stride, block, nullptr);
    }
    for (; i < part.end; ++i)
      for (std::int64_t r = 0; r < rows; ++r)
        axpy_rows<1, 1>(x + r * inputs + i, inputs, w + i * outputs + o, outputs, sums + r * stride, stride, block,
                        nullptr);
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < block; ++c) y[r * outputs + o + c] = sums[r * stride + c];
  }
  for (std::int64_t r = 0; o < range.end && r < rows; ++r)
    product_rows<1>({x + r * inputs + part.begin, inputs, 1, part.end - part.begin}, w + part.begin * outputs + o,
                    outputs, is_first ? b + o : y + r * outputs + o, y + r * outputs + o, outputs, range.end - o);
}

// d_x[R, I] += d_y[R, columns] w[I, columns]^T
template <int R, int I>
inline void dot_rows(const float* d_y, std::int64_t d_stride, const float* w, std::int64_t w_stride,
                     std::int64_t columns, float* d_x, std::int64_t d_x_stride, const float* next) {
  Value sums[R][I];
  each<R>([&](auto r) DISTTRAIN_INLINE { each<I>([&](auto i) DISTTRAIN_INLINE { sums[r][i] = Vec::zero(); }); });
  const auto add = [&](std::int64_t o, auto load) DISTTRAIN_INLINE {
    Value rows[I];
    each<I>([&](auto i) DISTTRAIN_INLINE { rows[i] = load(w + i * w_stride + o); });
    each<R>([&](auto r) DISTTRAIN_INLINE {
      const Value gradient = load(d_y + r * d_stride + o);
      each<I>([&](auto i) DISTTRAIN_INLINE { sums[r][i] = Vec::fma(gradient, rows[i], sums[r][i]); });
    });
  };
  std::int64_t o = 0;
  for (; o + kWidth <= columns; o += kWidth) {
    if (next != nullptr) __builtin_prefetch(next + o);
    add(o, [](const float* from) DISTTRAIN_INLINE { return Vec::load(from); });
  }
  if (o < columns) {
    const Mask mask = Vec::mask(columns - o);
    add(o, [&mask](const float* from) DISTTRAIN_INLINE { return Vec::load(from, mask); });
  }
  each<R>([&](auto r) DISTTRAIN_INLINE {
    each<I>([&](auto i) DISTTRAIN_INLINE { d_x[r * d_x_stride + i] += Vec::sum(sums[r][i]); });
  });
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
                            std::uint32_t* positions, float* values, std::uint32_t* begins) {
  const Mask all = Vec::mask(kWidth);
  std::int64_t found = 0;
  for (std::int64_t group = 0; group < columns; group += kSparseGroup) {
    const std::int64_t size = smaller(columns - group, kSparseGroup);
    for (std::int64_t row = 0; row < rows; ++row) {
      if (found > most) return found;
      *begins++ = static_cast<std::uint32_t>(found);
      // This doesn't branch on whether a value is 0, because the CPU would often mispredict the branch.
      const float* from = x + row * columns + group;
      for (std::int64_t at = 0; at < size; at += kWidth) {
        const Mask mask = at + kWidth <= size ? all : Vec::mask(size - at);
        found += Vec::compress_nonzeros(Vec::load(from + at, mask), static_cast<std::uint32_t>(at), values + found,
                                        positions + found);
      }
    }
  }
  *begins = static_cast<std::uint32_t>(found);
  return found;
}

// The nonzero values of one row within one group of columns.
struct Run {
  const std::uint32_t* positions;
  const float* values;
  std::int64_t size;
};

inline Run run_of(const SparseView& x, std::int64_t group, std::int64_t row) {
  const std::uint32_t* begins = x.begins + group * x.rows + row;
  return {x.positions + begins[0], x.values + begins[0], begins[1] - begins[0]};
}

// The size of sparse_forward's tile. The tile has the weight's rows for one group of inputs, and up to 8 vectors of
// outputs in each row. In the tile all vectors are aligned. Vectors in the flat array may cross a cache line: half of
// them with AVX2, all of them with AVX-512.
constexpr std::int64_t kSparseTile = kSparseGroup * 8 * kWidth;

// The position of a value is the number of a row in the tile. Multiplies each value of the run by the row at its
// position, and adds the products to the J vectors at `to`.
template <int J>
void sparse_gather(const Run& run, const float* tile, float* to, const Mask& mask) {
  Row<J> sums = Row<J>::load(to, mask);
  for (std::int64_t e = 0; e < run.size; ++e)
    sums.add(Vec::broadcast(run.values + e), tile + run.positions[e] * (J * kWidth));
  sums.store(to, mask);
}

// sparse_weight_gradient takes up to kSparseRows rows at a time. For each column, kRowWords words say which of these
// rows have a nonzero value there: bit r of word w is for row 64 w + r.
constexpr std::int64_t kSparseRows = 128;
constexpr std::int64_t kRowWords = kSparseRows / 64;

// `column` is one column of x, and `rows` is the set of the rows in which this column isn't 0. Goes through these rows
// in ascending order: multiplies the column's value in row r by row r of the tile, and adds the product to the J
// vectors at `to`. If `is_first`, these vectors begin as 0. The sum stays in registers and is stored once. Adding
// row by row would store it once for each row.
template <int J>
void sparse_column(const std::uint64_t* rows, const float* column, std::int64_t stride, const float* tile,
                   bool is_first, float* to, const Mask& mask) {
  Row<J> sums = is_first ? Row<J>::zero() : Row<J>::load(to, mask);
  for (std::int64_t w = 0; w < kRowWords; ++w, column += 64 * stride, tile += 64 * J * kWidth)
    for (std::uint64_t left = rows[w]; left != 0; left &= left - 1) {
      const std::int64_t r = __builtin_ctzll(left);
      sums.add(Vec::broadcast(column + r * stride), tile + r * (J * kWidth));
    }
  sums.store(to, mask);
}

using SparseGather = void (*)(const Run&, const float*, float*, const Mask&);
using SparseColumn = void (*)(const std::uint64_t*, const float*, std::int64_t, const float*, bool, float*,
                              const Mask&);
constexpr SparseGather kGathers[] = {sparse_gather<1>, sparse_gather<2>, sparse_gather<3>, sparse_gather<4>,
                                     sparse_gather<5>, sparse_gather<6>, sparse_gather<7>, sparse_gather<8>};
constexpr SparseColumn kColumns[] = {sparse_column<1>, sparse_column<2>, sparse_column<3>, sparse_column<4>,
                                     sparse_column<5>, sparse_column<6>, sparse_column<7>, sparse_column<8>};

// The outputs are divided into parts of about equal size. A part has at most 8 vectors, which fit into registers.
struct Part {
  std::int64_t begin;
  std::int64_t vectors;
  Mask mask;  // of the last vector
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

// Copies one part of the outputs from `count` rows of a matrix into a tile. Elements of the last vector that the part's
// mask leaves out become 0.
inline void to_tile(const float* rows, std::int64_t stride, std::int64_t count, const Part& part, float* tile) {
  const std::int64_t last = (part.vectors - 1) * kWidth;
  for (std::int64_t i = 0; i < count; ++i, rows += stride, tile += last + kWidth) {
    for (std::int64_t o = 0; o < last; o += kWidth) Vec::store(tile + o, Vec::load(rows + o));
    Vec::store(tile + last, Vec::load(rows + last, part.mask));
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

// Reads kWidth columns at `x`, each with `count` rows. Each column has words of its own in `rows`: bit r of them says
// whether the column's value in row r is nonzero. Columns that `mask` leaves out count as 0.
inline void find_rows(const float* x, std::int64_t stride, std::int64_t count, const Mask& mask,
                      std::uint64_t (&rows)[kWidth][kRowWords]) {
  alignas(64) std::uint32_t found[kSparseRows / 32][kWidth];
  for (std::int64_t part = 0; part < kSparseRows / 32; ++part) {
    Vec::Bits bits = Vec::no_bits();
    for (std::int64_t r = 32 * part; r < smaller(count, 32 * part + 32); ++r)
      bits = Vec::mark_nonzeros(bits, Vec::load(x + r * stride, mask), std::uint32_t{1} << (r % 32));
    Vec::store_bits(found[part], bits);
  }
  for (std::int64_t c = 0; c < kWidth; ++c)
    for (std::int64_t w = 0; w < kRowWords; ++w)
      rows[c][w] = found[2 * w][c] | std::uint64_t{found[2 * w + 1][c]} << 32;
}

void sparse_weight_gradient(const SparseView& x, std::int64_t outputs, const float* d_y, float* d_w, Range range) {
  alignas(64) float tile[kSparseRows * 8 * kWidth];
  std::uint64_t rows[kWidth][kRowWords];
  const std::int64_t end = smaller(range.end * kSparseGroup, x.columns);
  for (std::int64_t first = 0; first < x.rows; first += kSparseRows) {
    const std::int64_t count = smaller(kSparseRows, x.rows - first);
    for (std::int64_t p = 0; p < count_parts(outputs); ++p) {
      const Part part = part_of(outputs, p);
      const SparseColumn column_of = kColumns[part.vectors - 1];
      to_tile(d_y + first * outputs + part.begin, outputs, count, part, tile);
      for (std::int64_t c = range.begin * kSparseGroup; c < end; c += kWidth) {
        const float* from = x.dense + first * x.columns + c;
        const std::int64_t width = smaller(kWidth, end - c);
        find_rows(from, x.columns, count, Vec::mask(width), rows);
        for (std::int64_t i = 0; i < width; ++i)
          column_of(rows[i], from + i, x.columns, tile, first == 0, d_w + (c + i) * outputs + part.begin, part.mask);
      }
    }
  }
}

constexpr Kernels kernels_named(const char* name) {
  return {name,           forward_few_rows, input_gradient_few_rows, weight_gradient_few_rows, bias_gradient,
          forward_narrow, sparse_collect,   sparse_forward,          sparse_weight_gradient};
}

}  // namespace
}  // namespace disttrain::workerd

#undef DISTTRAIN_INLINE
