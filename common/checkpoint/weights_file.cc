#include "common/checkpoint/weights_file.h"

#include <algorithm>

#include "common/checkpoint/numbers.h"

namespace disttrain::checkpoint {
namespace {

constexpr std::uint64_t kElementsAtOnce = kChunkBytes / sizeof(double);

// Fills `bytes` with elements of a variable in the dtype of the file.
Status read_as(DType dtype, Weights& weights, std::size_t variable, std::uint64_t begin, std::uint64_t elements,
               std::vector<std::byte>& bytes) {
  bytes.resize(elements * bytes_of(dtype));
  if (dtype == weights.variables()[variable].dtype) return weights.read_stored(variable, begin, bytes);
  std::vector<float> values(elements);
  if (Status read = weights.read(variable, begin, values); !read) return read;
  from_floats(dtype, values, bytes);
  return {};
}

}  // namespace

std::uint64_t stored_bytes(const Weights& weights, const StoredTensor& tensor) {
  return weights.variables()[tensor.variable].elements * bytes_of(tensor.dtype);
}

Status write_weights(Files& files, const std::string& path, Weights& weights, const std::vector<StoredTensor>& tensors,
                     const IsCancelled& is_cancelled, std::map<std::string, std::string> metadata) {
  std::vector<Tensor> table;
  std::uint64_t at = 0;
  for (const StoredTensor& tensor : tensors) {
    const std::uint64_t end = at + stored_bytes(weights, tensor);
    table.push_back({tensor.name, tensor.dtype, weights.variables()[tensor.variable].shape, at, end});
    at = end;
  }
  metadata["format"] = "pt";
  const std::string header = encode_header(table, metadata);
  Result<std::unique_ptr<OutputFile>> file = files.create(path);
  if (!file) return tl::unexpected(file.error());
  Status done = (*file)->reserve(header.size() + at);
  if (done) done = (*file)->append(std::as_bytes(std::span(header)));
  std::vector<std::byte> bytes;
  for (const StoredTensor& tensor : tensors) {
    const std::uint64_t elements = weights.variables()[tensor.variable].elements;
    for (std::uint64_t begin = 0; done && begin < elements; begin += kElementsAtOnce) {
      if (is_cancelled && is_cancelled()) return fail(ErrorCode::kTemporary, path + ": writing was cancelled");
      done = read_as(tensor.dtype, weights, tensor.variable, begin, std::min(kElementsAtOnce, elements - begin), bytes);
      if (done) done = (*file)->append(bytes);
    }
  }
  if (done) done = (*file)->sync();
  return done;
}

}  // namespace disttrain::checkpoint
