// The whole numbers that a column of a model can take.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "common/model.h"

namespace disttrain::input {

struct IntegerBounds {
  std::int64_t smallest = 0;
  std::int64_t largest = 0;
};

// Those that an integer type can hold.
inline IntegerBounds bounds_of(DType dtype) {
  if (dtype == DType::kUint8) return {0, std::numeric_limits<std::uint8_t>::max()};
  if (dtype == DType::kInt32)
    return {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()};
  return {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()};
}

// Those of the column's type that are within its limit, too.
inline IntegerBounds bounds_of(const ColumnSpec& column) {
  const IntegerBounds type = bounds_of(column.dtype);
  if (column.limit == 0) return type;
  return {0, std::min(type.largest, static_cast<std::int64_t>(column.limit - 1))};
}

// Whether the column can take the number. column.ignored may be beyond the limit.
inline bool takes(const ColumnSpec& column, std::int64_t number) {
  const auto is_within = [number](const IntegerBounds& bounds) {
    return bounds.smallest <= number && number <= bounds.largest;
  };
  return is_within(bounds_of(column)) || (column.ignored == number && is_within(bounds_of(column.dtype)));
}

}  // namespace disttrain::input
