#include "common/program/package.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "common/check.h"
#include "common/doubles.h"
#include "common/printable.h"

namespace disttrain::program {
namespace {

std::string text_of(const std::vector<std::uint64_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

}  // namespace

Result<Package> Package::open(checkpoint::Files& files, const std::string& path) {
  Result<PackageFile> file = PackageFile::open(files, path);
  if (!file) return tl::unexpected(file.error());
  const Member* json = file->find("disttrain.json");
  if (json == nullptr)
    return fail(ErrorCode::kData, path +
                                      " has no member disttrain.json, so disttrain.export didn't write it; export "
                                      "the model with disttrain.export");
  Result<std::string> text = file->read(*json, kMaxSidecarBytes);
  if (!text) return tl::unexpected(text.error());
  Result<Sidecar> sidecar = parse_sidecar(*text, path);
  if (!sidecar) return tl::unexpected(sidecar.error());
  Package package(std::move(*file), std::move(*sidecar), std::move(*text));
  if (Status matched = package.match_tensors(); !matched) return tl::unexpected(matched.error());
  return package;
}

Status Package::match_tensors() {
  values_ = file_.find("disttrain.safetensors");
  if (values_ == nullptr)
    return fail(ErrorCode::kData, path() + " has no member disttrain.safetensors; export the model again");
  const Result<std::unique_ptr<checkpoint::InputFile>> file = file_.open_member(*values_);
  if (!file) return tl::unexpected(file.error());
  Result<checkpoint::TensorTable> table = checkpoint::read_header(**file, path() + ": disttrain.safetensors");
  if (!table) return tl::unexpected(table.error());
  data_begin_ = table->data_begin;
  std::map<std::string, const checkpoint::Tensor*> by_name;
  for (const checkpoint::Tensor& tensor : table->tensors) by_name.emplace(tensor.name, &tensor);
  std::size_t in_model = 0;
  for (const SidecarVariable& variable : sidecar_.variables) {
    const auto found = by_name.find(variable.name);
    if (found == by_name.end())
      return fail(ErrorCode::kData, path() + ": disttrain.safetensors has no values of variable " + variable.name +
                                        "; export the model again");
    const checkpoint::Tensor& tensor = *found->second;
    if (tensor.shape != variable.shape)
      return fail(ErrorCode::kData, path() + ": variable " + variable.name + " has values of shape " +
                                        text_of(tensor.shape) + "; expected " + text_of(variable.shape) +
                                        "; export the model again");
    tensors_.push_back(tensor);
    if (variable.kind == SidecarVariable::Kind::kFrozen) continue;
    const bool is_double = sidecar_.model.variables[in_model++].dtype == DType::kFloat64;
    const checkpoint::DType expected = is_double ? checkpoint::DType::kF64 : checkpoint::DType::kF32;
    if (tensor.dtype != expected)
      return fail(ErrorCode::kData, path() + ": variable " + variable.name + " has values of dtype " +
                                        checkpoint::name_of(tensor.dtype) + "; expected " +
                                        checkpoint::name_of(expected) + "; export the model again");
  }
  return {};
}

Result<std::vector<float>> Package::initial_values(const Layout& layout) {
  DISTTRAIN_CHECK(layout.model == sidecar_.model);
  if (Status verified = verify_values(); !verified) return tl::unexpected(verified.error());
  const Result<std::unique_ptr<checkpoint::InputFile>> file = file_.open_member(*values_);
  if (!file) return tl::unexpected(file.error());
  std::vector<float> values(word_count(sidecar_.model));
  std::size_t in_model = 0;
  for (std::size_t v = 0; v < sidecar_.variables.size(); ++v) {
    if (sidecar_.variables[v].kind == SidecarVariable::Kind::kFrozen) continue;
    const VariableSpec& variable = sidecar_.model.variables[in_model];
    const std::span<float> part = std::span(values).subspan(layout.variable_begins[in_model++], word_count(variable));
    if (Status read = (*file)->read_at(data_begin_ + tensors_[v].begin, std::as_writable_bytes(part)); !read)
      return tl::unexpected(read.error());
    const auto bad = with_type(variable.dtype, [part]<typename T>(T) {
      const std::span<T> numbers = values_in<T>(part);
      return std::count_if(numbers.begin(), numbers.end(), [](T value) { return !std::isfinite(value); });
    });
    if (bad > 0)
      return fail(ErrorCode::kData, path() + ": variable " + variable.name + " has " + std::to_string(bad) +
                                        " initial values of " + std::to_string(element_count(variable)) +
                                        " that are NaN or infinite; export a model with finite weights");
  }
  return values;
}

Result<std::vector<std::byte>> Package::read(std::size_t variable) {
  const Result<std::unique_ptr<checkpoint::InputFile>> file = file_.open_member(*values_);
  if (!file) return tl::unexpected(file.error());
  const checkpoint::Tensor& tensor = tensors_[variable];
  std::vector<std::byte> bytes(tensor.end - tensor.begin);
  if (Status read = (*file)->read_at(data_begin_ + tensor.begin, bytes); !read) return tl::unexpected(read.error());
  return bytes;
}

}  // namespace disttrain::program
