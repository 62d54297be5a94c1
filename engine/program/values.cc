// The sidecar has a limit for each integer column that may be an index. Without this check an index out of range would
// end the process inside compiled code.
#include "engine/program/values.h"

#include <algorithm>

namespace disttrain::workerd {
namespace {

// Returns the place of the first value outside 0 .. limit - 1 that the loss doesn't ignore, or the number of values.
template <typename Integer>
std::size_t first_outside(std::span<const Integer> values, const ColumnSpec& column) {
  const auto found = std::find_if(values.begin(), values.end(), [&column](Integer value) {
    const bool is_outside = value < 0 || static_cast<std::uint64_t>(value) >= column.limit;
    return is_outside && column.ignored != std::int64_t{value};
  });
  return static_cast<std::size_t>(found - values.begin());
}

template <typename Integer>
Status check_limit(const ColumnSpec& column, const ColumnValues& values) {
  const std::span<const Integer> integers = values.as<Integer>();
  const std::size_t place = first_outside(integers, column);
  if (place == integers.size()) return {};
  return fail(ErrorCode::kData,
              "column " + column.name + " of record " + std::to_string(place / element_count(column)) +
                  " of the batch has the value " + std::to_string(integers[place]) + "; the program takes 0 to " +
                  std::to_string(column.limit - 1) + ": correct the data, or export the model for more values");
}

Status check_column(const ColumnSpec& column, const ColumnValues& values, std::uint64_t examples,
                    const std::string& path) {
  const std::uint64_t expected = examples * element_count(column) * size_of(column.dtype);
  if (values.bytes.size() != expected || !values.row_ends.empty())
    return fail(ErrorCode::kData, path + " takes column " + column.name + " as " + std::to_string(expected) +
                                      " bytes for " + std::to_string(examples) + " records of " +
                                      std::to_string(element_count(column)) + " " + to_string(column.dtype) +
                                      "; the batch has " + std::to_string(values.bytes.size()) +
                                      " bytes: export the model for records of the data's shape");
  if (column.limit == 0) return {};
  if (column.dtype == DType::kInt64) return check_limit<std::int64_t>(column, values);
  if (column.dtype == DType::kInt32) return check_limit<std::int32_t>(column, values);
  if (column.dtype == DType::kUint8) return check_limit<std::uint8_t>(column, values);
  return {};
}

}  // namespace

Status check_size(const program::Sidecar& sidecar, std::uint64_t examples, const std::string& path) {
  if (!sidecar.batch || examples == *sidecar.batch) return {};
  const std::string batch = std::to_string(*sidecar.batch);
  return fail(ErrorCode::kConfig, path + " was exported with dynamic_batch=False, so it takes only batches of " +
                                      batch + " records, and not this one of " + std::to_string(examples) +
                                      ": export the model with dynamic_batch=True, or let train.batch_size, "
                                      "evaluate.batch_size, data.records and evaluate.records give batches of " +
                                      batch);
}

Status check_batch(const program::Sidecar& sidecar, const std::vector<std::uint32_t>& columns, const Batch& batch,
                   const std::string& path) {
  if (Status sized = check_size(sidecar, batch.examples, path); !sized) return sized;
  for (const std::uint32_t c : columns)
    if (Status checked = check_column(sidecar.model.columns[c], batch.columns[c], batch.examples, path); !checked)
      return checked;
  return {};
}

}  // namespace disttrain::workerd
