#include "common/checkpoint/weights.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/bounded_json.h"
#include "common/check.h"
#include "common/checkpoint/numbers.h"

namespace disttrain::checkpoint {
namespace {

constexpr const char* kSingleName = "model.safetensors";
constexpr std::uint64_t kMaxIndexBytes = kMaxHeaderBytes;
constexpr std::size_t kConvertedAtOnce = 64 * 1024;
constexpr std::size_t kTensorsAtOnce = 16 * 1024;

std::uint64_t product_of(const std::vector<std::uint64_t>& shape) {
  std::uint64_t elements = 1;
  for (const std::uint64_t extent : shape) elements *= extent;  // the header's shapes were checked
  return elements;
}

// Reads a Hugging Face index, {"weight_map": {NAME: FILE}}. Returns the names of the variables in each file.
Result<std::map<std::string, std::set<std::string>>> read_index(Files& files, const std::string& path,
                                                                const IsCancelled& is_cancelled) {
  const Result<std::string> text = read_text(files, path, kMaxIndexBytes);
  if (!text) return tl::unexpected(text.error());
  const auto bad = [&path](const std::string& what) {
    return fail(ErrorCode::kData, path + " isn't a valid safetensors index: " + what);
  };
  const nlohmann::json json = parse_bounded_json(*text);
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object())
    return bad("it has no object \"weight_map\"");
  std::map<std::string, std::set<std::string>> names;
  std::size_t read = 0;
  for (const auto& [name, file] : json["weight_map"].items()) {
    if (read++ % kTensorsAtOnce == 0 && is_cancelled && is_cancelled())
      return fail(ErrorCode::kTemporary, path + ": reading it was cancelled");
    if (!file.is_string() || file.get<std::string>().empty() || file.get<std::string>().find('/') != std::string::npos)
      return bad("weight_map must map " + name + " to the name of a file in the same folder");
    names[file.get<std::string>()].insert(name);
  }
  return names;
}

}  // namespace

std::optional<std::size_t> Weights::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? std::nullopt : std::optional(found->second);
}

Status Weights::read(std::size_t variable, std::uint64_t begin, std::span<float> out) {
  const Variable& about = variables_.at(variable);
  DISTTRAIN_CHECK_LE(begin, about.elements);
  DISTTRAIN_CHECK_LE(out.size(), about.elements - begin);
  if (!is_convertible(about.dtype))
    return fail(ErrorCode::kConfig,
                path_ + ": " + about.name + " has dtype " + name_of(about.dtype) + ", which can't be read as float32");
  if (about.dtype == DType::kF32) return read_stored(variable, begin, std::as_writable_bytes(out));
  std::vector<std::byte> stored;
  while (!out.empty()) {
    const std::span<float> some = out.first(std::min(out.size(), kConvertedAtOnce));
    stored.resize(some.size() * bytes_of(about.dtype));
    if (Status done = read_stored(variable, begin, stored); !done) return done;
    to_floats(about.dtype, stored, some);
    begin += some.size();
    out = out.subspan(some.size());
  }
  return {};
}

Status Weights::read(std::size_t variable, std::uint64_t begin, std::span<double> out) {
  if (variables_.at(variable).dtype == DType::kF64) return read_stored(variable, begin, std::as_writable_bytes(out));
  std::vector<float> floats(std::min(out.size(), kConvertedAtOnce));
  while (!out.empty()) {
    const std::span<float> some = std::span(floats).first(std::min(floats.size(), out.size()));
    if (Status done = read(variable, begin, some); !done) return done;
    std::copy(some.begin(), some.end(), out.begin());
    begin += some.size();
    out = out.subspan(some.size());
  }
  return {};
}

Status Weights::read_stored(std::size_t variable, std::uint64_t begin, MutableBytes out) {
  const Variable& about = variables_.at(variable);
  const std::uint64_t size = bytes_of(about.dtype);
  DISTTRAIN_CHECK_LE(begin, about.elements);
  DISTTRAIN_CHECK_LE(out.size() / size, about.elements - begin);
  const std::vector<Piece>& pieces = pieces_[variable];
  auto piece = std::upper_bound(pieces.begin(), pieces.end(), begin,
                                [](std::uint64_t at, const Piece& one) { return at < one.begin; });
  while (!out.empty()) {
    const Piece& from = *std::prev(piece);
    const std::uint64_t skip = begin - from.begin;
    const std::uint64_t count = std::min<std::uint64_t>(from.elements - skip, out.size() / size);
    const std::uint64_t offset = from.offset + skip * size;
    const MutableBytes some = out.first(count * size);
    const Status done = std::visit([&](auto& file) { return file.read(offset, some); }, files_[from.file]);
    if (!done) return done;
    begin += count;
    out = out.subspan(count * size);
    ++piece;
  }
  return {};
}

void Weights::add(Variable variable, std::vector<Piece> pieces) {
  by_name_.emplace(variable.name, variables_.size());
  variables_.push_back(std::move(variable));
  pieces_.push_back(std::move(pieces));
}

Result<Weights> Weights::open(Files& files, const std::string& path, const IsCancelled& is_cancelled) {
  const Result<std::vector<std::string>> names = files.list(path);
  if (!names && names.error().code != ErrorCode::kNoInput) return tl::unexpected(names.error());
  const auto has = [&names](const char* name) { return std::binary_search(names->begin(), names->end(), name); };
  const bool is_file = !names;
  if (is_file || (!has(kManifestName) && has(kSingleName))) {
    Weights weights(is_file ? path : path + "/" + kSingleName);
    if (Status added = weights.add_file(files, weights.path_, nullptr, is_cancelled); !added)
      return tl::unexpected(added.error());
    return weights;
  }
  if (!has(kManifestName) && has(kIndexName)) return of_index(files, path, is_cancelled);
  Result<OpenCheckpoint> checkpoint = open_named(files, path);
  if (checkpoint) return of_checkpoint(files, std::move(*checkpoint));
  if (checkpoint.error().code != ErrorCode::kNoInput) return tl::unexpected(checkpoint.error());
  const std::string instead = holds_folders_of_jobs(files, path);
  return fail(ErrorCode::kNoInput,
              "no weights in " + path + ": " +
                  (instead.empty() ? "expected a checkpoint (" + std::string(kManifestName) +
                                         "), a job's folder of checkpoints, " + kSingleName + " or " + kIndexName +
                                         "; to use another safetensors file, give the path of "
                                         "the file"
                                   : instead));
}

Result<Weights> Weights::of_checkpoint(Files& files, OpenCheckpoint checkpoint, Slots slots) {
  Weights weights(checkpoint.path);
  weights.checkpoint_ = std::make_unique<OpenCheckpoint>(std::move(checkpoint));
  const Manifest& manifest = weights.checkpoint_->manifest;
  for (std::size_t s = 0; s < manifest.shards.size(); ++s) {
    Result<VerifiedFile> file = VerifiedFile::open(files, weights.path_, manifest.files[s]);
    if (!file) return tl::unexpected(file.error());
    weights.files_.emplace_back(std::move(*file));
  }
  const bool is_average = slots == Slots::kAverage;
  if (is_average && !manifest.has_average)
    return fail(ErrorCode::kConfig, weights.path_ +
                                        " has no moving averages of the parameters: its job was trained without "
                                        "evaluate.average; use the parameters themselves");
  const std::uint64_t first = is_average ? manifest.slots : 0;
  for (std::uint64_t array = first; array <= (slots == Slots::kNone ? 0 : manifest.slots); ++array)
    for (const VariableEntry& entry : manifest.variables) {
      const std::string prefix = array == first ? "" : "slot" + std::to_string(array - 1) + "/";
      const std::uint64_t words = element_words(entry);
      std::vector<Piece> pieces;
      for (const SliceEntry& slice : entry.slices) {
        const std::uint64_t word = array * manifest.shards[slice.shard].words + slice.offset;
        pieces.push_back({slice.begin / words, slice.words / words, slice.shard,
                          manifest.files[slice.shard].data_begin + word * sizeof(float)});
      }
      const DType dtype = words == 2 ? DType::kF64 : DType::kF32;
      weights.add({prefix + entry.name, entry.shape, dtype, product_of(entry.shape)}, std::move(pieces));
    }
  if (Status added = weights.add_program(files); !added) return tl::unexpected(added.error());
  return weights;
}

Status Weights::add_program(Files& files) {
  const FileEntry* entry = find_file(checkpoint_->manifest, kProgramName);
  if (entry == nullptr) return {};
  const Result<std::unique_ptr<InputFile>> plain = files.open(path_ + "/" + kProgramName);
  if (!plain) return tl::unexpected(plain.error());
  const Result<TensorTable> table = read_header(**plain, path_ + "/" + kProgramName);
  if (!table) return tl::unexpected(table.error());
  Result<VerifiedFile> file = VerifiedFile::open(files, path_, *entry);
  if (!file) return tl::unexpected(file.error());
  for (const Tensor& tensor : table->tensors) {
    if (find(tensor.name)) continue;
    const std::uint64_t elements = product_of(tensor.shape);
    add({tensor.name, tensor.shape, tensor.dtype, elements},
        {{0, elements, files_.size(), table->data_begin + tensor.begin}});
  }
  files_.emplace_back(std::move(*file));
  return {};
}

Status Weights::add_file(Files& files, const std::string& path, const std::set<std::string>* wanted,
                         const IsCancelled& is_cancelled) {
  Result<std::unique_ptr<InputFile>> file = files.open(path);
  if (!file) return tl::unexpected(file.error());
  const Result<TensorTable> table = read_header(**file, path, is_cancelled);
  if (!table) return tl::unexpected(table.error());
  std::size_t taken = 0;
  for (std::size_t t = 0; t < table->tensors.size(); ++t) {
    if (t % kTensorsAtOnce == 0 && is_cancelled && is_cancelled())
      return fail(ErrorCode::kTemporary, path + ": reading it was cancelled");
    const Tensor& tensor = table->tensors[t];
    if (wanted != nullptr && !wanted->contains(tensor.name)) continue;
    const std::uint64_t elements = product_of(tensor.shape);
    ++taken;
    add({tensor.name, tensor.shape, tensor.dtype, elements},
        {{0, elements, files_.size(), table->data_begin + tensor.begin}});
  }
  if (wanted != nullptr && taken != wanted->size())
    for (const std::string& name : *wanted)
      if (!find(name)) return fail(ErrorCode::kData, path + " has no " + name + ", although the index lists it there");
  files_.emplace_back(PlainFile{std::move(*file)});
  return {};
}

Result<Weights> Weights::of_index(Files& files, const std::string& folder, const IsCancelled& is_cancelled) {
  const auto names = read_index(files, folder + "/" + kIndexName, is_cancelled);
  if (!names) return tl::unexpected(names.error());
  Weights weights(folder);
  for (const auto& [file, wanted] : *names)
    if (Status added = weights.add_file(files, folder + "/" + file, &wanted, is_cancelled); !added)
      return tl::unexpected(added.error());
  return weights;
}

}  // namespace disttrain::checkpoint
