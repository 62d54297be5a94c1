// The types of the elements of tensors. Variables are float32 or float64. A column of a batch may have any of these
// types. An engine may compute in float16 or bfloat16 between its inputs and its outputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace disttrain {

// kBytes: each value is a string of bytes, so its length differs from value to value.
enum class DType : std::uint8_t { kFloat32, kFloat64, kFloat16, kBfloat16, kInt32, kInt64, kUint8, kBytes };

// The size of one element in bytes. 1 for kBytes: the size of one byte of a string.
std::size_t size_of(DType dtype);

// The names are those of NumPy and PyTorch: "float32", "int64"; "bytes" for kBytes.
const char* to_string(DType dtype);
std::optional<DType> dtype_of(const std::string& name);

// Whether a value of the dtype, which is kFloat32 or kFloat64, represents the number exactly. False for a NaN.
bool represents(DType dtype, double number);

}  // namespace disttrain
