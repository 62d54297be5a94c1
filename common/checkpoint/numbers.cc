#include "common/checkpoint/numbers.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/check.h"
#include "common/checkpoint/half.h"

namespace disttrain::checkpoint {
namespace {

template <typename T>
T integer_of(float value) {
  if (std::isnan(value)) return T(0);
  const double rounded = std::nearbyint(static_cast<double>(value));
  // The largest values of the 64-bit types aren't doubles, so the bounds below are the powers of two that follow them.
  if (rounded < static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (rounded >= std::ldexp(1.0, std::numeric_limits<T>::digits)) return std::numeric_limits<T>::max();
  return static_cast<T>(rounded);
}

// Calls visit(stored, decode, encode): `stored` is a value of the type that the file has, decode(stored) is a float,
// and encode(float) is a stored value.
template <typename Visit>
void with_type(DType dtype, const Visit& visit) {
  const auto as_integer = [&visit](auto stored) {
    using T = decltype(stored);
    visit(
        stored, [](T value) { return static_cast<float>(value); }, [](float value) { return integer_of<T>(value); });
  };
  switch (dtype) {
    case DType::kF32:
      return visit(
          float{}, [](float value) { return value; }, [](float value) { return value; });
    case DType::kF64:
      return visit(
          double{}, [](double value) { return static_cast<float>(value); },
          [](float value) { return static_cast<double>(value); });
    case DType::kF16:
      return visit(std::uint16_t{}, from_f16, to_f16);
    case DType::kBF16:
      return visit(std::uint16_t{}, from_bf16, to_bf16);
    case DType::kBool:
      return visit(
          std::uint8_t{}, [](std::uint8_t value) { return value == 0 ? 0.0F : 1.0F; },
          [](float value) { return static_cast<std::uint8_t>(std::nearbyint(value) != 0.0F); });
    case DType::kU8:
      return as_integer(std::uint8_t{});
    case DType::kI8:
      return as_integer(std::int8_t{});
    case DType::kU16:
      return as_integer(std::uint16_t{});
    case DType::kI16:
      return as_integer(std::int16_t{});
    case DType::kU32:
      return as_integer(std::uint32_t{});
    case DType::kI32:
      return as_integer(std::int32_t{});
    case DType::kU64:
      return as_integer(std::uint64_t{});
    case DType::kI64:
      return as_integer(std::int64_t{});
    case DType::kF8E4M3:
    case DType::kF8E5M2:
    case DType::kF8E8M0:
    case DType::kC64:
      break;
  }
  DISTTRAIN_CHECK(is_convertible(dtype));
}

}  // namespace

bool is_convertible(DType dtype) {
  return dtype != DType::kF8E4M3 && dtype != DType::kF8E5M2 && dtype != DType::kF8E8M0 && dtype != DType::kC64;
}

void to_floats(DType dtype, Bytes bytes, std::span<float> out) {
  DISTTRAIN_CHECK_EQ(bytes.size(), out.size() * bytes_of(dtype));
  with_type(dtype, [&](auto stored, const auto& decode, const auto&) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      std::memcpy(&stored, bytes.data() + i * sizeof(stored), sizeof(stored));
      out[i] = decode(stored);
    }
  });
}

void from_floats(DType dtype, std::span<const float> values, MutableBytes out) {
  DISTTRAIN_CHECK_EQ(out.size(), values.size() * bytes_of(dtype));
  with_type(dtype, [&](auto stored, const auto&, const auto& encode) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      stored = encode(values[i]);
      std::memcpy(out.data() + i * sizeof(stored), &stored, sizeof(stored));
    }
  });
}

}  // namespace disttrain::checkpoint
