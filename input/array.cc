// The inputs of npy and idx files keep their integer type in memory, so that a model that takes integers gets exact
// values: float32 has only 24 bits. A check of the range replaces a check of the type: int64 files fit a column of
// int32 or uint8 if their values do. Values of 8 bytes are kept as float32 if the model takes float32, because they
// would take twice the memory.
#include "input/array.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "common/check.h"
#include "input/number_text.h"
#include "input/order.h"
#include "input/typed_values.h"

namespace disttrain::input {

namespace {

static_assert(std::endian::native == std::endian::little, "the code below swaps bytes only for big-endian files");

template <typename T>
T element(const std::byte* from, bool big_endian) {
  std::byte raw[sizeof(T)];
  for (std::size_t i = 0; i < sizeof(T); ++i) raw[i] = from[big_endian ? sizeof(T) - 1 - i : i];
  return std::bit_cast<T>(raw);
}

// Calls use(index, value) for each element. `value` has the type T of the array's elements.
template <typename T, typename Use>
void each(const Array& array, std::uint64_t count, Use use) {
  const std::byte* bytes = array.bytes.get();
  for (std::uint64_t i = 0; i < count; ++i) use(i, element<T>(bytes + i * sizeof(T), array.header.big_endian));
}

// Calls each<T>(), where T is the type of the array's elements.
template <typename Use>
void for_each_element(const Array& array, Use use) {
  const std::uint64_t count = array.rows() * array.row_elements();
  switch (array.header.type) {
    case ElementType::kU8:
      return each<std::uint8_t>(array, count, use);
    case ElementType::kI8:
      return each<std::int8_t>(array, count, use);
    case ElementType::kI16:
      return each<std::int16_t>(array, count, use);
    case ElementType::kI32:
      return each<std::int32_t>(array, count, use);
    case ElementType::kI64:
      return each<std::int64_t>(array, count, use);
    case ElementType::kF32:
      return each<float>(array, count, use);
    case ElementType::kF64:
      return each<double>(array, count, use);
  }
}

}  // namespace

std::size_t size_of(ElementType type) {
  constexpr std::size_t kSizes[] = {1, 1, 2, 4, 8, 4, 8};
  return kSizes[static_cast<std::size_t>(type)];
}

const char* to_string(ElementType type) {
  constexpr const char* kNames[] = {"uint8", "int8", "int16", "int32", "int64", "float32", "float64"};
  return kNames[static_cast<std::size_t>(type)];
}

std::uint64_t Array::row_elements() const {
  std::uint64_t product = 1;
  for (std::size_t i = 1; i < header.shape.size(); ++i) product *= header.shape[i];
  return product;
}

std::string describe_shape(const std::vector<std::uint64_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

Result<Array> read_array(ByteSource& file, const ArrayHeader& header) {
  const auto bad = [&file, &header](const std::string& what) {
    return fail(ErrorCode::kData, file.path() + ": " + what + " (its header says " + describe_shape(header.shape) +
                                      " of " + to_string(header.type) + ")");
  };
  DISTTRAIN_CHECK_GE(header.shape.size(), 1u);
  const std::uint64_t most = file.most_content_bytes();
  std::uint64_t bytes = size_of(header.type);
  for (const std::uint64_t dimension : header.shape) {
    if (dimension == 0) return bad("has no records, expected at least one: fetch it again or leave it out");
    if (dimension > most / bytes) {
      return bad("is truncated or its header is wrong, because a file of " + std::to_string(file.file_bytes()) +
                 " bytes can't hold that many values: fetch or copy it again");
    }
    bytes *= dimension;
  }
  if (header.shape[0] > kMaxRecords) {
    return bad("has more records than the " + std::to_string(kMaxRecords) + " that a data set may have");
  }
  Array array;
  array.path = file.path();
  array.header = header;
  array.file_bytes = file.file_bytes();
  try {
    // The memory isn't initialised. So if a wrong header claims a huge array, the process doesn't use that much memory.
    array.bytes = std::make_unique_for_overwrite<std::byte[]>(bytes);
  } catch (const std::bad_alloc&) {
    return bad("needs " + std::to_string(bytes) + " bytes of memory, which this host can't give");
  }
  const Result<std::size_t> got = file.read({array.bytes.get(), bytes});
  if (!got) return tl::unexpected(got.error());
  if (*got < bytes) {
    return bad("is truncated: " + std::to_string(*got) + " bytes of values, expected " + std::to_string(bytes) +
               ": fetch or copy it again");
  }
  std::byte beyond{};
  const Result<std::size_t> rest = file.read({&beyond, 1});
  if (!rest) return tl::unexpected(rest.error());
  if (*rest != 0) {
    return bad("has bytes after the last value, expected the file to end after " + std::to_string(bytes) +
               " bytes of values: fetch or copy it again");
  }
  return array;
}

Status write_as(DType to, const Array& array, std::span<std::byte> out) {
  const std::uint64_t count = array.rows() * array.row_elements();
  DISTTRAIN_CHECK_EQ(out.size(), count * disttrain::size_of(to));
  std::uint64_t first_bad = count;
  with_type(to, out, [&]<typename T>(std::span<T> values) {
    for_each_element(array, [&values, &first_bad](std::uint64_t i, auto value) {
      values[i] = static_cast<T>(value);
      if constexpr (std::is_floating_point_v<T>)
        if (!std::isfinite(values[i]) && i < first_bad) first_bad = i;
    });
  });
  if (first_bad == count) return {};
  const std::uint64_t row = array.row_elements();
  return fail(ErrorCode::kData, array.path + ": value " + std::to_string(first_bad % row) + " of record " +
                                    std::to_string(first_bad / row) + " isn't a finite " + disttrain::to_string(to) +
                                    " number: correct the data");
}

std::optional<std::vector<std::int64_t>> whole_numbers(const Array& array) {
  std::vector<std::int64_t> values(array.rows() * array.row_elements());
  bool are_whole = true;
  for_each_element(array, [&values, &are_whole](std::uint64_t i, auto value) {
    if constexpr (std::is_floating_point_v<decltype(value)>)
      if (!(std::abs(value) <= kLargestWhole && value == std::floor(value))) {
        are_whole = false;
        return;
      }
    values[i] = static_cast<std::int64_t>(value);
  });
  if (!are_whole) return std::nullopt;
  return values;
}

}  // namespace disttrain::input
