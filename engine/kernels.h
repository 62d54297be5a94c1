// Our own kernels for products of small or sparse matrices. libtorch's libraries are slower for these because they copy
// ("pack") each matrix before they use it, even if they use it only once. There is one set of kernels per instruction
// set; the program chooses the set when it runs. dense.cc chooses the method for each product.
//
// Matrices are row-major; a stride is the distance between two rows in elements. All sums use fused multiply-add in a
// fixed order, so the same arguments give the same bits on the same machine.
#pragma once

#include <cstdint>

namespace disttrain::workerd {

// A SparseView divides the columns of a matrix into groups of this many columns. The size is chosen so that the part of
// a weight that one group needs stays in the L1 cache.
inline constexpr std::int64_t kSparseGroup = 112;

// The nonzero values of a matrix, sorted by group of columns and within a group by row. A value's position is the
// number of its column within the group.
struct SparseView {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  const std::uint32_t* positions = nullptr;
  const float* values = nullptr;
  // The values of row r in group g have the indices [begins[g * rows + r], begins[g * rows + r + 1]) in `values`.
  const std::uint32_t* begins = nullptr;
  const float* dense = nullptr;  // the matrix itself
};

struct DenseShape {
  std::int64_t rows = 0;  // examples
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
};

// The part of a result, [begin, end), that one call computes. Several threads can compute different parts of one
// result.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// In all kernels x is [rows, inputs], w [inputs, outputs], b [outputs] and y [rows, outputs]. The kernels whose names
// end in _few_rows need rows <= kMaxKernelRows.
struct Kernels {
  const char* name;

  // y = x w + b for the range of outputs. Reads w once. If `inputs` doesn't begin at 0, the call goes on with the sums
  // that are in y: the product may be computed in several calls, one for each range of inputs in turn, with the same
  // bits.
  void (*forward_few_rows)(const DenseShape&, const float* x, const float* w, const float* b, float* y, Range outputs,
                           Range inputs);

  // d_x = d_y w^T for the range of inputs. Reads w once.
  void (*input_gradient_few_rows)(const DenseShape&, const float* d_y, const float* w, float* d_x, Range inputs);

  // d_w = x^T d_y for the range of inputs. Writes each element once.
  void (*weight_gradient_few_rows)(const DenseShape&, const float* x, const float* d_y, float* d_w, Range inputs);

  // d_b = the sum of d_y over its rows, in their order.
  void (*bias_gradient)(const DenseShape&, const float* d_y, float* d_b);

  // y = x w + b for the range of rows. It is fast if there are few outputs, because the sums of a row then stay in
  // registers.
  void (*forward_narrow)(const DenseShape&, const float* x, const float* w, const float* b, float* y, Range rows);

  // Fills the arrays of a SparseView of x, which is [rows, columns], and returns the number of nonzero values. If there
  // are more than `most`, it stops early; then the arrays must not be used. `positions` and `values` need room for most
  // + kCollectSlack elements, `begins` for groups * rows + 1.
  std::int64_t (*sparse_collect)(std::int64_t rows, std::int64_t columns, const float* x, std::int64_t most,
                                 std::uint32_t* positions, float* values, std::uint32_t* begins);

  // y = x w + b for the range of rows.
  void (*sparse_forward)(const SparseView& x, std::int64_t outputs, const float* w, const float* b, float* y,
                         Range rows);

  // d_w = x^T d_y for the range of groups. Of the arrays in x, it reads only x.dense.
  void (*sparse_weight_gradient)(const SparseView& x, std::int64_t outputs, const float* d_y, float* d_w, Range groups);
};

// sparse_collect may write this many values beyond `most`: it stops only after a whole group of a row, and it writes
// whole vectors of up to 16 values.
inline constexpr std::int64_t kCollectSlack = kSparseGroup + 16;

inline constexpr std::int64_t kMaxKernelRows = 256;

const Kernels& avx2_kernels();
const Kernels& avx512_kernels();

// Returns the fastest kernels that this machine can run, or nullptr if it has neither AVX-512F nor AVX2 with FMA.
const Kernels* machine_kernels();

}  // namespace disttrain::workerd
