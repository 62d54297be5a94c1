// Bytes as values of a type that is known when the program runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/check.h"
#include "common/dtype.h"

namespace disttrain::input {

template <typename T>
std::span<T> values_in(std::span<std::byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

// Calls `body` with `out` as a span of the type that `dtype` names. The values of kBytes are single bytes.
template <typename Body>
void with_type(DType dtype, std::span<std::byte> out, const Body& body) {
  switch (dtype) {
    case DType::kFloat32:
      return body(values_in<float>(out));
    case DType::kFloat64:
      return body(values_in<double>(out));
    case DType::kInt32:
      return body(values_in<std::int32_t>(out));
    case DType::kInt64:
      return body(values_in<std::int64_t>(out));
    case DType::kUint8:
    case DType::kBytes:
      return body(values_in<std::uint8_t>(out));
    case DType::kFloat16:
    case DType::kBfloat16:
      break;
  }
  DISTTRAIN_CHECK(false);  // fits() refuses these types
}

}  // namespace disttrain::input
