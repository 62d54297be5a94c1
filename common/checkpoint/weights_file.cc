#include "common/checkpoint/weights_file.h"

#include <algorithm>

#include "common/checkpoint/half.h"

namespace disttrain::checkpoint {
namespace {

constexpr std::uint64_t kElementsAtOnce = kChunkBytes / sizeof(float);

Status append_as(OutputFile& file, DType dtype, std::span<const float> values, std::vector<std::uint16_t>& halves) {
  if (dtype == DType::kF32) return file.append(std::as_bytes(values));
  halves.resize(values.size());
  std::transform(values.begin(), values.end(), halves.begin(), dtype == DType::kF16 ? to_f16 : to_bf16);
  return file.append(std::as_bytes(std::span(halves)));
}

}  // namespace

std::uint64_t stored_bytes(const Weights::Variable& variable, DType dtype) {
  return variable.elements * bytes_of(dtype);
}

Status write_weights(Files& files, const std::string& path, Weights& weights, const std::vector<std::size_t>& variables,
                     DType dtype, const IsCancelled& is_cancelled) {
  std::vector<Tensor> tensors;
  std::uint64_t at = 0;
  for (const std::size_t v : variables) {
    const Weights::Variable& variable = weights.variables()[v];
    const std::uint64_t end = at + stored_bytes(variable, dtype);
    tensors.push_back({variable.name, dtype, variable.shape, at, end});
    at = end;
  }
  const std::string header = encode_header(tensors, {{"format", "pt"}});
  Result<std::unique_ptr<OutputFile>> file = files.create(path);
  if (!file) return tl::unexpected(file.error());
  Status done = (*file)->reserve(header.size() + at);
  if (done) done = (*file)->append(std::as_bytes(std::span(header)));
  std::vector<float> values;
  std::vector<std::uint16_t> halves;
  for (const std::size_t v : variables) {
    const std::uint64_t elements = weights.variables()[v].elements;
    for (std::uint64_t begin = 0; done && begin < elements; begin += values.size()) {
      if (is_cancelled && is_cancelled()) return fail(ErrorCode::kTemporary, path + ": writing was cancelled");
      values.resize(std::min(kElementsAtOnce, elements - begin));
      done = weights.read(v, begin, values);
      if (done) done = append_as(**file, dtype, values, halves);
    }
  }
  if (done) done = (*file)->sync();
  return done;
}

}  // namespace disttrain::checkpoint
