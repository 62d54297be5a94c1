#include "common/dtype.h"

#include <array>
#include <cmath>
#include <limits>

#include "common/check.h"

namespace disttrain {

namespace {

struct Entry {
  const char* name;
  std::size_t bytes;
};

constexpr std::array<Entry, 8> kEntries = {{{"float32", 4},
                                            {"float64", 8},
                                            {"float16", 2},
                                            {"bfloat16", 2},
                                            {"int32", 4},
                                            {"int64", 8},
                                            {"uint8", 1},
                                            {"bytes", 1}}};

const Entry& entry(DType dtype) {
  const auto index = static_cast<std::size_t>(dtype);
  DISTTRAIN_CHECK_LT(index, kEntries.size());
  return kEntries[index];
}

}  // namespace

std::size_t size_of(DType dtype) {
  return entry(dtype).bytes;
}

const char* to_string(DType dtype) {
  return entry(dtype).name;
}

std::optional<DType> dtype_of(const std::string& name) {
  for (std::size_t i = 0; i < kEntries.size(); ++i)
    if (name == kEntries[i].name) return static_cast<DType>(i);
  return std::nullopt;
}

bool represents(DType dtype, double number) {
  if (dtype == DType::kFloat64 || std::isinf(number)) return !std::isnan(number);
  return std::abs(number) <= std::numeric_limits<float>::max() &&
         static_cast<double>(static_cast<float>(number)) == number;
}

}  // namespace disttrain
