// The file is in each checkpoint and not once in the job's folder, so that a checkpoint that is copied elsewhere is
// whole. For a model that is mostly frozen, each checkpoint takes the disk space of the frozen part. The chief writes
// the file. It opens the package when the job begins and keeps it open, because an export replaces a package by
// renaming. So the package must be at its path on the chief's host, too; otherwise the job runs with a warning, and an
// export has only the trained variables. A worker doesn't send the frozen values: they may be gigabytes, and no
// parameter passes through the chief. State of other dtypes travels as float32, and an export rounds it back. So
// `num_batches_tracked` is exact up to 2^24.
#include "common/program/kept_program.h"

#include <map>

#include "common/checkpoint/chunk_writer.h"
#include "common/checkpoint/verified_file.h"

namespace disttrain::program {
namespace {

using checkpoint::FileEntry;
using checkpoint::kProgramName;
using checkpoint::Manifest;

constexpr const char* kSidecarKey = "disttrain.json";

// The names that exporters give to types (SAFETENSORS_DTYPES in python/disttrain/exporting/sidecar.py).
std::optional<checkpoint::DType> stored_as(const std::string& dtype) {
  using checkpoint::DType;
  static const std::map<std::string, DType> types = {
      {"float32", DType::kF32}, {"float64", DType::kF64}, {"float16", DType::kF16}, {"bfloat16", DType::kBF16},
      {"int64", DType::kI64},   {"int32", DType::kI32},   {"int16", DType::kI16},   {"int8", DType::kI8},
      {"uint8", DType::kU8},    {"bool", DType::kBool}};
  const auto found = types.find(dtype);
  return found == types.end() ? std::nullopt : std::optional(found->second);
}

// The variables of a checkpoint and of the sidecar in it must be the same.
Status match(const Sidecar& sidecar, const Manifest& manifest, const std::string& path) {
  const auto differ = [&path](const std::string& name) {
    return fail(ErrorCode::kData, path + " doesn't describe variable " + name + " of its checkpoint: it is damaged");
  };
  std::map<std::string, const VariableSpec*> described;
  for (const VariableSpec& variable : sidecar.model.variables) described.emplace(variable.name, &variable);
  for (const checkpoint::VariableEntry& variable : manifest.variables) {
    const auto found = described.find(variable.name);
    if (found == described.end() || found->second->shape != variable.shape) return differ(variable.name);
    described.erase(found);
  }
  return described.empty() ? Status() : differ(described.begin()->first);
}

}  // namespace

Result<FileEntry> keep_program(checkpoint::Files& files, const std::string& folder, Package& package) {
  std::vector<checkpoint::Tensor> tensors;
  std::vector<std::size_t> kept;
  std::uint64_t at = 0;
  for (std::size_t v = 0; v < package.sidecar().variables.size(); ++v) {
    const SidecarVariable& variable = package.sidecar().variables[v];
    if (variable.kind != SidecarVariable::Kind::kFrozen || !variable.is_persistent) continue;
    checkpoint::Tensor tensor = package.tensor(v);
    const std::uint64_t bytes = tensor.end - tensor.begin;
    tensor.begin = at;
    tensor.end = at += bytes;
    tensors.push_back(std::move(tensor));
    kept.push_back(v);
  }
  const std::string header = checkpoint::encode_header(tensors, {{kSidecarKey, package.sidecar_text()}});
  FileEntry entry;
  entry.name = kProgramName;
  entry.data_begin = header.size();
  const Result<std::unique_ptr<checkpoint::OutputFile>> file = files.create(folder + "/" + kProgramName);
  if (!file) return tl::unexpected(file.error());
  Status done = (*file)->reserve(header.size() + at);
  const checkpoint::IsCancelled never;
  checkpoint::ChunkWriter writer(**file, never, entry);
  if (done) done = writer.write(std::as_bytes(std::span(header)));
  for (const std::size_t v : kept) {
    if (!done) break;
    const Result<std::vector<std::byte>> bytes = package.read(v);
    done = bytes ? writer.write(*bytes) : Status(tl::unexpected(bytes.error()));
  }
  if (done) done = writer.finish();
  if (!done) return tl::unexpected(done.error());
  return entry;
}

Result<std::optional<Sidecar>> kept_program(checkpoint::Files& files, const checkpoint::OpenCheckpoint& checkpoint) {
  const FileEntry* entry = checkpoint::find_file(checkpoint.manifest, kProgramName);
  if (entry == nullptr) return std::optional<Sidecar>();
  const std::string path = checkpoint.path + "/" + kProgramName;
  // Verify the header, which is at most as long as the data's begin says. The values are verified when they are read.
  Result<checkpoint::VerifiedFile> verified = checkpoint::VerifiedFile::open(files, checkpoint.path, *entry);
  if (!verified) return tl::unexpected(verified.error());
  if (entry->data_begin > entry->bytes || entry->data_begin > checkpoint::kMaxHeaderBytes + checkpoint::kDataAlignment)
    return fail(ErrorCode::kData, path + ": the manifest says that its data begins at byte " +
                                      std::to_string(entry->data_begin) + ": the checkpoint is damaged");
  std::vector<std::byte> header(entry->data_begin);
  if (Status read = verified->read(0, header); !read) return tl::unexpected(read.error());
  const Result<std::unique_ptr<checkpoint::InputFile>> file = files.open(path);
  if (!file) return tl::unexpected(file.error());
  const Result<checkpoint::TensorTable> table = checkpoint::read_header(**file, path);
  if (!table) return tl::unexpected(table.error());
  const auto text = table->metadata.find(kSidecarKey);
  if (text == table->metadata.end())
    return fail(ErrorCode::kData, path + " has no \"" + kSidecarKey + "\" in its metadata: it is damaged");
  Result<Sidecar> sidecar = parse_sidecar(text->second, path);
  if (!sidecar) return tl::unexpected(sidecar.error());
  if (Status matched = match(*sidecar, checkpoint.manifest, path); !matched) return tl::unexpected(matched.error());
  return std::optional(std::move(*sidecar));
}

Result<std::vector<StateEntry>> state_dict_of(const Sidecar& sidecar) {
  std::vector<StateEntry> entries;
  std::map<std::string, checkpoint::DType> dtypes;
  for (const SidecarVariable& variable : sidecar.variables) {
    if (!variable.is_persistent) continue;
    const std::optional<checkpoint::DType> dtype = stored_as(variable.dtype);
    if (!dtype)
      return fail(ErrorCode::kConfig, "the model's variable " + variable.name + " has dtype \"" + variable.dtype +
                                          "\", which this version can't write: use the version that exported the "
                                          "model, or a newer one");
    dtypes.emplace(variable.name, *dtype);
    entries.push_back({variable.name, variable.name, *dtype});
  }
  for (const auto& [alias, name] : sidecar.aliases)
    if (const auto of = dtypes.find(name); of != dtypes.end()) entries.push_back({alias, name, of->second});
  return entries;
}

}  // namespace disttrain::program
