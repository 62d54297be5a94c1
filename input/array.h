// A numeric array, as in idx and npy files: its element type, byte order, shape and bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/dtype.h"
#include "common/result.h"
#include "input/file_reader.h"

namespace disttrain::input {

enum class ElementType : std::uint8_t { kU8, kI8, kI16, kI32, kI64, kF32, kF64 };

std::size_t size_of(ElementType type);
const char* to_string(ElementType type);  // "uint8", "float32", ...
inline bool is_float(ElementType type) {
  return type == ElementType::kF32 || type == ElementType::kF64;
}

inline constexpr std::size_t kMaxDimensions = 32;

struct ArrayHeader {
  ElementType type = ElementType::kU8;
  bool big_endian = false;
  std::vector<std::uint64_t> shape;  // at most kMaxDimensions
};

struct Array {
  std::string path;
  ArrayHeader header;
  std::unique_ptr<std::byte[]> bytes;  // rows() * row_elements() elements, row-major
  std::uint64_t file_bytes = 0;

  std::uint64_t rows() const { return header.shape.at(0); }
  std::uint64_t row_elements() const;  // product of all dimensions but the first; 1 if there is only one dimension
};

std::string describe_shape(const std::vector<std::uint64_t>& shape);  // "[60000, 28, 28]"

// Reads the values, which follow the header. Errors, kData: the file is truncated, has bytes after the last value, is
// too small for its shape, has no records, or is a gzip file with a wrong checksum.
Result<Array> read_array(ByteSource& file, const ArrayHeader& header);

// Writes all elements to `out` as values of type `to`, which is kFloat32, kFloat64, or an integer type that can hold
// the array's type. `out` has as many bytes as these values take. Errors, kData: an element isn't finite or is too
// large for the type `to`.
Status write_as(DType to, const Array& array, std::span<std::byte> out);

// All elements as int64. Nothing if one isn't a whole number, or is one of a floating type beyond kLargestWhole.
std::optional<std::vector<std::int64_t>> whole_numbers(const Array& array);

}  // namespace disttrain::input
