// A word's number is its place in a vocabulary, which may come from the training files. A job that goes on from a
// checkpoint may find other words, for example after files were added. It could keep the old words, but then the new
// ones would train as unknown words without a warning. So the chief compares both and refuses the job. Means and
// deviations may differ by 1 %, because the sums depend on how the records are divided into files. The journal keeps
// the columns for a restarted chief. Their message has at most 8 MiB. With more, a checkpoint keeps none, and predict
// reads the training files.
#include "common/checkpoint/kept_columns.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "common/bounded_cbor.h"
#include "common/bounds.h"
#include "common/checkpoint/chunk_writer.h"
#include "common/checkpoint/verified_file.h"

namespace disttrain::checkpoint {

namespace {

using Json = nlohmann::json;

constexpr std::uint32_t kColumnsFormat = 1;
constexpr double kMostChange = 0.01;

bool is_number(const Json& entry, const char* key) {
  const auto found = entry.find(key);
  return found != entry.end() && found->is_number() && std::isfinite(found->get<double>());
}

bool has_words(const Json& entry) {
  const auto words = entry.find("words");
  if (words == entry.end() || !words->is_array()) return false;
  for (const Json& word : *words)
    if (!word.is_string()) return false;
  return true;
}

bool is_column(const Json& entry) {
  return entry.is_object() && entry.contains("name") && entry["name"].is_string() && has_words(entry) &&
         is_number(entry, "mean") && is_number(entry, "deviation") && entry["deviation"].get<double>() > 0.0 &&
         entry.contains("are_classes") && entry["are_classes"].is_boolean() &&
         (!entry.contains("are_whole") || entry["are_whole"].is_boolean()) && is_number(entry, "smallest") &&
         is_number(entry, "largest");
}

bool is_near(const KeptColumn& kept, const KeptColumn& found) {
  return std::abs(kept.mean - found.mean) <= kMostChange * kept.deviation &&
         std::abs(kept.deviation - found.deviation) <= kMostChange * kept.deviation;
}

}  // namespace

std::string encode_columns(const std::vector<KeptColumn>& columns) {
  Json list = Json::array();
  for (const KeptColumn& column : columns)
    list.push_back({{"name", column.name},
                    {"words", column.words},
                    {"mean", column.mean},
                    {"deviation", column.deviation},
                    {"are_classes", column.are_classes},
                    {"are_whole", column.are_whole},
                    {"smallest", column.smallest},
                    {"largest", column.largest}});
  std::string bytes;
  Json::to_cbor({{"format", kColumnsFormat}, {"columns", std::move(list)}}, bytes);
  return is_bounded_cbor(bytes, kMaxCborNesting) ? bytes : "";
}

Result<std::vector<KeptColumn>> decode_columns(const std::string& bytes, const std::string& path) {
  const auto damaged = [&path] {
    return fail(ErrorCode::kData, path + ": isn't a list of columns: the checkpoint is damaged");
  };
  const Json all = parse_bounded_cbor(bytes);
  if (!all.is_object() || !all.contains("format") || !all["format"].is_number_unsigned()) return damaged();
  if (all["format"].get<std::uint64_t>() != kColumnsFormat)
    return fail(ErrorCode::kConfig, path + ": has a format that this version doesn't know; use a newer version");
  if (!all.contains("columns") || !all["columns"].is_array()) return damaged();
  std::vector<KeptColumn> columns;
  for (const Json& entry : all["columns"]) {
    if (!is_column(entry)) return damaged();
    columns.push_back({.name = entry["name"].get<std::string>(),
                       .words = entry["words"].get<std::vector<std::string>>(),
                       .mean = entry["mean"].get<double>(),
                       .deviation = entry["deviation"].get<double>(),
                       .are_classes = entry["are_classes"].get<bool>(),
                       .are_whole = entry.value("are_whole", entry["are_classes"].get<bool>()),
                       .smallest = entry["smallest"].get<double>(),
                       .largest = entry["largest"].get<double>()});
  }
  return columns;
}

std::optional<std::string> differing_column(const std::vector<KeptColumn>& kept, const std::vector<KeptColumn>& found) {
  for (std::size_t i = 0; i < std::max(kept.size(), found.size()); ++i) {
    if (i >= found.size()) return kept[i].name;
    if (i >= kept.size() || kept[i].name != found[i].name || kept[i].words != found[i].words ||
        kept[i].are_classes != found[i].are_classes || !is_near(kept[i], found[i]))
      return found[i].name;
  }
  return std::nullopt;
}

Result<FileEntry> keep_columns(Files& files, const std::string& folder, const std::string& bytes) {
  FileEntry entry;
  entry.name = kColumnsName;
  const Result<std::unique_ptr<OutputFile>> file = files.create(folder + "/" + kColumnsName);
  if (!file) return tl::unexpected(file.error());
  Status done = (*file)->reserve(bytes.size());
  const IsCancelled never;
  ChunkWriter writer(**file, never, entry);
  if (done) done = writer.write(std::as_bytes(std::span(bytes)));
  if (done) done = writer.finish();
  if (!done) return tl::unexpected(done.error());
  return entry;
}

Result<std::optional<std::vector<KeptColumn>>> kept_columns(Files& files, const OpenCheckpoint& checkpoint) {
  std::optional<std::vector<KeptColumn>> none;
  const FileEntry* entry = find_file(checkpoint.manifest, kColumnsName);
  if (entry == nullptr) return none;
  const std::string path = checkpoint.path + "/" + kColumnsName;
  if (entry->bytes > kMaxKeptColumnsBytes)
    return fail(ErrorCode::kData, path + ": has " + std::to_string(entry->bytes) + " bytes, expected at most " +
                                      std::to_string(kMaxKeptColumnsBytes) + ": the checkpoint is damaged");
  Result<VerifiedFile> file = VerifiedFile::open(files, checkpoint.path, *entry);
  if (!file) return tl::unexpected(file.error());
  std::string bytes(entry->bytes, '\0');
  if (Status read = file->read(0, std::as_writable_bytes(std::span(bytes))); !read) return tl::unexpected(read.error());
  Result<std::vector<KeptColumn>> columns = decode_columns(bytes, path);
  if (!columns) return tl::unexpected(columns.error());
  return std::optional(std::move(*columns));
}

}  // namespace disttrain::checkpoint
