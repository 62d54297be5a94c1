// disttrain checkpoint export PATH OUT: writes a checkpoint's parameters as plain safetensors. If the job has a step
// program, the result is the state_dict of the model that was exported. The verb writes one file or, with
// --max-shard-size, a folder with the same layout as Hugging Face uses. It writes under a temporary name beside
// OUT, and renames the result to OUT when it is complete.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>
#include <set>
#include <system_error>

#include "common/checkpoint/disk_files.h"
#include "common/checkpoint/weights_file.h"
#include "common/counted.h"
#include "common/daemon/startup.h"
#include "common/program/exported_tensors.h"
#include "common/program/kept_program.h"
#include "tools/disttrain/checkpoint/checkpoint.h"
#include "tools/disttrain/follow/progress.h"
#include "tools/disttrain/interrupts.h"
#include "tools/disttrain/json.h"
#include "tools/disttrain/units.h"
#include "tools/disttrain/verbs.h"

namespace disttrain::cli {

namespace {

namespace fs = std::filesystem;
using checkpoint::DType;
using checkpoint::StoredTensor;
using checkpoint::Weights;

constexpr char kExportProgram[] = "disttrain checkpoint export";
constexpr char kModel[] = "model";
constexpr char kSuffix[] = ".safetensors";

// One file of the export.
struct FilePart {
  std::string name;
  std::vector<StoredTensor> tensors;
};

// The format of a tensor in the export: `wanted` ("" for its own) if the tensor has floating-point values.
DType dtype_of(const std::string& wanted, DType own) {
  const bool is_float = own == DType::kF32 || own == DType::kF64 || own == DType::kF16 || own == DType::kBF16;
  if (wanted.empty() || !is_float) return own;
  return wanted == "f16" ? DType::kF16 : wanted == "bf16" ? DType::kBF16 : DType::kF32;
}

// Assigns the tensors to files as Hugging Face does. The tensors stay in the model's order. A new file begins when the
// next tensor would make the current file larger than `max_bytes`. A tensor that is larger than `max_bytes` gets its
// own file. File names have a number only if there are several files.
std::vector<FilePart> cut(const Weights& weights, std::vector<StoredTensor> tensors, std::uint64_t max_bytes) {
  std::vector<FilePart> parts(1);
  std::uint64_t bytes = 0;
  for (StoredTensor& tensor : tensors) {
    const std::uint64_t more = checkpoint::stored_bytes(weights, tensor);
    if (!parts.back().tensors.empty() && (more > max_bytes || bytes > max_bytes - more)) {
      parts.emplace_back();
      bytes = 0;
    }
    parts.back().tensors.push_back(std::move(tensor));
    bytes += more;
  }
  for (std::size_t p = 0; p < parts.size(); ++p) {
    char number[64] = "";
    if (parts.size() > 1) std::snprintf(number, sizeof(number), "-%05zu-of-%05zu", p + 1, parts.size());
    parts[p].name = std::string(kModel) + number + kSuffix;
  }
  return parts;
}

std::uint64_t bytes_of(const Weights& weights, const std::vector<FilePart>& parts) {
  std::uint64_t bytes = 0;
  for (const FilePart& part : parts)
    for (const StoredTensor& tensor : part.tensors) bytes += checkpoint::stored_bytes(weights, tensor);
  return bytes;
}

std::string index_of(const Weights& weights, const std::vector<FilePart>& parts) {
  Json map = Json::object();
  for (const FilePart& part : parts)
    for (const StoredTensor& tensor : part.tensors)
      // An assignment by key would compare the name with all others, which takes quadratic time.
      map.get_ref<Json::object_t&>().emplace_back(tensor.name, part.name);
  return Json{{"metadata", {{"total_size", bytes_of(weights, parts)}}}, {"weight_map", map}}.dump(2) + "\n";
}

// Returns the name of an entry that no export writes. "": an earlier export may have written all entries.
std::string other_than_export(const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (name != checkpoint::kIndexName && !(name.starts_with(kModel) && name.ends_with(kSuffix))) return name;
  return "";
}

// Checks whether the export may write OUT.
Status check(const CheckpointExportOptions& options, const fs::path& out) {
  const bool is_folder = options.max_shard_size.has_value();
  if (is_folder && (out.extension() == kSuffix || options.max_shard_size == 0u))
    return fail(ErrorCode::kUsage,
                "OUT is " + out.string() +
                    "; expected a folder together with --max-shard-size SIZE, and a SIZE of at least 1 byte");
  if (!is_folder && out.extension() != kSuffix)
    return fail(ErrorCode::kUsage, "OUT is " + out.string() + "; expected a file NAME" + kSuffix +
                                       ", or a folder together with --max-shard-size SIZE");
  if (Status there = check_folder_of(out.string()); !there) return there;
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(out, ignored))) return {};
  if (fs::is_directory(out, ignored) != is_folder)
    return fail(ErrorCode::kUsage, out.string() + " exists already and is " + (is_folder ? "not a" : "a") +
                                       " folder: choose another name");
  checkpoint::DiskFiles files;
  const auto names = is_folder ? files.list(out.string()) : std::vector<std::string>{""};
  if (!names) return tl::unexpected(names.error());
  if (names->empty()) return {};
  if (!options.force)
    return fail(ErrorCode::kUsage, out.string() + " exists already: choose another name, or replace it with --force");
  if (const std::string other = is_folder ? other_than_export(*names) : ""; !other.empty())
    return fail(ErrorCode::kUsage,
                out.string() + " holds " + other +
                    ", which no export wrote; --force replaces only exports, so choose another folder");
  return {};
}

// The temporary name of the export, in the same folder as OUT. The destructor removes the export unless keep() has
// renamed it.
class Beside {
 public:
  explicit Beside(fs::path place) : place_(std::move(place)), path_(beside(".tmp-")) {}
  ~Beside() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Beside(const Beside&) = delete;

  std::string path() const { return path_.string(); }

  // Renames the export to OUT, and removes an earlier export from there.
  Status keep(checkpoint::Files& files) {
    const fs::path old = beside(".old-");
    std::error_code ignored;
    std::error_code error;
    // rename() can replace a file or an empty folder, but no folder with entries. So such a folder is moved away first.
    if (fs::is_directory(place_, ignored) && !fs::is_empty(place_, ignored)) fs::rename(place_, old, error);
    if (!error) fs::rename(path_, place_, error);
    if (error)
      return fail(ErrorCode::kFailed, "can't rename " + path() + " to " + place_.string() + ": " + error.message());
    fs::remove_all(old, ignored);
    return files.sync_directory(place_.parent_path().string());
  }

 private:
  fs::path beside(const char* kind) const {
    return place_.parent_path() / ("." + place_.filename().string() + kind + std::to_string(::getpid()));
  }

  const fs::path place_;
  const fs::path path_;
};

Status write_folder(checkpoint::Files& files, const std::string& folder, Weights& weights,
                    const std::vector<FilePart>& parts, const checkpoint::IsCancelled& is_cancelled) {
  Status done = files.make_directory(folder);
  for (const FilePart& part : parts)
    if (done) done = checkpoint::write_weights(files, folder + "/" + part.name, weights, part.tensors, is_cancelled);
  if (done && parts.size() > 1)
    done = checkpoint::write_text(files, folder + "/" + checkpoint::kIndexName, index_of(weights, parts));
  if (done) done = files.sync_directory(folder);
  return done;
}

Status write(const CheckpointExportOptions& options, const fs::path& out, const checkpoint::IsCancelled& is_cancelled) {
  checkpoint::DiskFiles files;
  Result<checkpoint::OpenCheckpoint> open = checkpoint::open_named(files, absolute_path(options.path));
  if (!open) return tl::unexpected(open.error());
  const Result<std::optional<program::Sidecar>> sidecar = program::kept_program(files, *open);
  if (!sidecar.has_value()) return tl::unexpected(sidecar.error());
  // Without a step program nobody knows the dtype of the trainer's buffers: whole numbers are stored as float32, too,
  // and half precision doesn't have them.
  const bool is_half = options.dtype == "f16" || options.dtype == "bf16";
  std::set<std::string> states;
  if (!*sidecar && is_half)
    for (const checkpoint::VariableEntry& variable : open->manifest.variables)
      if (variable.kind == VariableKind::kState) states.insert(variable.name);
  Result<Weights> weights = Weights::of_checkpoint(files, std::move(*open),
                                                   options.average ? Weights::Slots::kAverage : Weights::Slots::kNone);
  if (!weights) return tl::unexpected(weights.error());
  Result<std::vector<StoredTensor>> tensors = program::exported_tensors(*weights, *sidecar);
  if (!tensors) return tl::unexpected(tensors.error());
  for (StoredTensor& tensor : *tensors)
    if (!states.contains(tensor.name)) tensor.dtype = dtype_of(options.dtype, tensor.dtype);
  const std::size_t variables = tensors->size();
  std::uint64_t elements = 0;
  for (const StoredTensor& tensor : *tensors) elements += weights->variables()[tensor.variable].elements;
  const std::vector<FilePart> parts = cut(*weights, std::move(*tensors), options.max_shard_size.value_or(UINT64_MAX));
  Beside beside(out);
  const Status done = options.max_shard_size ? write_folder(files, beside.path(), *weights, parts, is_cancelled)
                                             : checkpoint::write_weights(files, beside.path(), *weights,
                                                                         parts.front().tensors, is_cancelled);
  if (!done) return done;
  if (Status well = check(options, out); !well) return well;  // OUT may have appeared since the first check
  if (Status kept = beside.keep(files); !kept) return kept;
  std::cout << out.string() << ": " << with_commas(static_cast<double>(elements)) << ' '
            << noun_for(elements, "parameter") << " in " << counted(variables, "variable") << ", "
            << bytes_text(bytes_of(*weights, parts)) << " in " << counted(parts.size(), "file") << ", from "
            << weights->path() << '\n';
  return {};
}

}  // namespace

int checkpoint_export(const CheckpointExportOptions& options) {
  const fs::path out = absolute_path(options.out);
  if (Status well = check(options, out); !well) return daemon::report(kExportProgram, well.error());
  asio::io_context loop;
  Interrupts interrupts(loop);
  const Status done = write(options, out, [&loop, &interrupts] {
    loop.poll();
    return interrupts.count() > 0;
  });
  if (interrupts.count() > 0 && !done) return interrupts.exit_code();
  return done ? 0 : daemon::report(kExportProgram, done.error());
}

}  // namespace disttrain::cli
