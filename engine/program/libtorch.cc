#include "engine/program/libtorch.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <string_view>

#include "common/check.h"
#include "common/doubles.h"
#include "common/random.h"
#include "engine/torch_options.h"

namespace disttrain::workerd {
namespace {

at::ScalarType type_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return at::kFloat;
    case DType::kFloat64:
      return at::kDouble;
    case DType::kFloat16:
      return at::kHalf;
    case DType::kBfloat16:
      return at::kBFloat16;
    case DType::kInt32:
      return at::kInt;
    case DType::kInt64:
      return at::kLong;
    case DType::kUint8:
    case DType::kBytes:
      break;
  }
  return at::kByte;
}

// The types of frozen variables, which are more than those of columns.
Result<at::ScalarType> type_of(const program::SidecarVariable& variable, const std::string& path) {
  constexpr std::pair<const char*, at::ScalarType> kOthers[] = {
      {"int8", at::kChar}, {"int16", at::kShort}, {"bool", at::kBool}};
  if (const std::optional<DType> dtype = dtype_of(variable.dtype); dtype && *dtype != DType::kBytes)
    return type_of(*dtype);
  for (const auto& [name, type] : kOthers)
    if (variable.dtype == name) return type;
  return fail(ErrorCode::kData, path + ": variable " + variable.name + " has dtype \"" + variable.dtype +
                                    "\", which libtorch doesn't have; export the model again");
}

std::vector<std::int64_t> sizes_of(const std::vector<std::uint64_t>& shape) {
  return {shape.begin(), shape.end()};
}

}  // namespace

std::string libtorch_version() {
  const std::string version = TORCH_VERSION;
  return version.substr(0, version.find('+'));
}

void prepare_libtorch(std::uint32_t threads, const StepSeed& seed) {
  use_threads(threads);
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  const std::lock_guard lock(generator.mutex());
  Random random(seed.job_seed, stream_of("program", seed.step) ^ stream_of("rank", seed.rank));
  generator.set_current_seed(random.bits64());
}

at::Tensor view_of(float* words, const VariableSpec& variable) {
  return at::from_blob(words, sizes_of(variable.shape), type_of(variable.dtype));
}

at::Tensor view_of(const ColumnValues& values, const ColumnSpec& column, std::uint64_t examples) {
  std::vector<std::int64_t> sizes = sizes_of(column.shape);
  sizes.insert(sizes.begin(), static_cast<std::int64_t>(examples));
  return at::from_blob(const_cast<std::byte*>(values.bytes.data()), sizes, type_of(column.dtype));
}

Result<at::Tensor> read_frozen(program::Package& package, std::size_t variable) {
  const program::SidecarVariable& described = package.sidecar().variables[variable];
  const Result<at::ScalarType> type = type_of(described, package.path());
  if (!type) return tl::unexpected(type.error());
  Result<std::vector<std::byte>> bytes = package.read(variable);
  if (!bytes) return tl::unexpected(bytes.error());
  at::Tensor tensor = at::empty(sizes_of(described.shape), at::TensorOptions(*type));
  if (tensor.nbytes() != bytes->size())
    return fail(ErrorCode::kData, package.path() + ": frozen variable " + described.name + " has " +
                                      std::to_string(bytes->size()) + " bytes; expected " +
                                      std::to_string(tensor.nbytes()) + "; export the model again");
  std::memcpy(tensor.mutable_data_ptr(), bytes->data(), bytes->size());
  return tensor;
}

void write_result(const at::Tensor& result, const VariableSpec& variable, const float* old, std::uint64_t examples,
                  float* out) {
  const std::uint64_t elements = element_count(variable);
  TORCH_CHECK(static_cast<std::uint64_t>(result.numel()) == elements, "the program returned ", result.numel(),
              " values of variable ", variable.name, "; expected ", elements);
  view_of(out, variable).copy_(result.reshape(sizes_of(variable.shape)));
  if (variable.kind == VariableKind::kTrainable || examples > 1) return;
  const std::span<const float> words(out, word_count(variable));
  const bool is_finite = with_type(variable.dtype, [words]<typename T>(T) {
    const std::span<const T> values = values_in<T>(words);
    return std::all_of(values.begin(), values.end(), [](T value) { return std::isfinite(value); });
  });
  if (!is_finite) std::copy_n(old, words.size(), out);
}

std::string cause_of(const std::string& text) {
  constexpr std::string_view kOfScript = "\nRuntimeError: ";
  const std::size_t script = text.rfind(kOfScript);
  const std::size_t begin =
      script == std::string::npos ? std::min(text.find_first_not_of('\n'), text.size()) : script + kOfScript.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

}  // namespace disttrain::workerd
