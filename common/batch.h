// The records of one computation, as arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace disttrain {

// The values of one column for all records of a batch, as ColumnSpec describes them: row-major, the batch's dimension
// first. A ragged column has its rows without padding, one after the other; row i ends before element row_ends[i].
// Otherwise, and if all rows of a ragged column have the largest length, row_ends may be empty. A column of
// DType::kBytes has row_ends too.
struct ColumnValues {
  std::span<const std::byte> bytes;
  std::span<const std::uint64_t> row_ends;

  template <typename T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
};

// A view of the columns of a batch. The owner of the memory is in each case another object
// (input/batch_buffer.h).
struct Batch {
  std::uint64_t examples = 0;             // may be 0
  std::span<const ColumnValues> columns;  // one for each of ModelSpec::columns
};

}  // namespace disttrain
