#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "input/column_parts.h"
#include "input/column_values.h"
#include "input/columns.h"
#include "input/find_files.h"
#include "input/fit_files.h"
#include "input/load.h"
#include "input/memory_budget.h"
#include "input/read_parallel.h"
#include "input/table_reader.h"
#include "input/table_slice.h"

namespace disttrain::input {

namespace {

struct FilePart {
  EncodedRows rows;
  std::uint64_t file_bytes = 0;
  std::vector<bool> has_values;  // for each of wanted_columns(): some record has one
};

void note_values(const Source& source, const Table& table, std::vector<bool>& has_values) {
  has_values.resize(table.columns.size());
  std::size_t c = 0;
  for (const ColumnSection& section : source.columns) {
    if (!input::has_values(section)) continue;
    has_values[c] = has_values[c] || has_a_value(section, table.columns[c], source.missing);
    ++c;
  }
}

// The memory that the tokens of all files take so far, and the most that they may take. They may take more than the
// files. The same for the other values of the records.
struct Room {
  const std::uint64_t most;
  const std::uint64_t most_of_others;
  std::atomic<std::uint64_t> used{0};
  std::atomic<std::uint64_t> used_by_others{0};
  std::atomic<bool> is_exceeded{false};
};

// Numbers take about as much memory as their texts. But a line of libsvm may have a million numbers, most of them 0,
// and a word may have a number for each category. Then the records are read for each batch.
std::uint64_t most_of_others(const std::vector<std::string>& paths, std::uint64_t memory) {
  constexpr std::uint64_t kMostGrowth = 4;
  return std::max(memory, kMostGrowth * estimated_bytes(paths));
}

std::uint64_t token_bytes(const EncodedRows& rows) {
  std::uint64_t bytes = 0;
  for (const TokenRows& column : rows.tokens) bytes += column.used_bytes();
  return bytes;
}

Result<FilePart> encode_file(const Source& source, const ColumnEncoder& encoder, const std::string& path, Room& room) {
  const Result<std::unique_ptr<TableReader>> reader = TableReader::open(source, path);
  if (!reader) return tl::unexpected(reader.error());
  FilePart part{.rows = {}, .file_bytes = (*reader)->file_bytes(), .has_values = {}};
  std::uint64_t known_bytes = 0;
  Table table;
  for (;;) {
    const Result<bool> more = (*reader)->next(table);
    if (!more.has_value()) return tl::unexpected(more.error());
    if (!*more) break;
    note_values(source, table, part.has_values);
    const std::uint64_t others = table.records * encoder.record_bytes();
    if (room.used_by_others.fetch_add(others) + others > room.most_of_others) {
      room.is_exceeded = true;
      return fail(ErrorCode::kConfig, path + ": the records take more memory than data.memory");
    }
    const Status ok = encoder.encode(
        table, [&reader](std::uint64_t record) { return (*reader)->place_of(record); }, part.rows);
    if (!ok) return tl::unexpected(ok.error());
    const std::uint64_t all_tokens = token_bytes(part.rows);
    const std::uint64_t bytes = all_tokens - std::exchange(known_bytes, all_tokens);
    if (room.used.fetch_add(bytes) + bytes > room.most && bytes > 0) {
      room.is_exceeded = true;
      return fail(ErrorCode::kConfig, path + ": the tokens take more memory than data.memory");
    }
  }
  if (part.rows.records == 0)
    return fail(ErrorCode::kData, path + ": has no records, expected at least one: fetch it again or leave it out");
  return part;
}

// Appends the values of each part, and frees them as soon as they are copied.
template <typename T>
std::unique_ptr<std::byte[]> joined(std::vector<FilePart>& parts, LargeArray<T> EncodedRows::*values) {
  std::size_t bytes = 0;
  for (const FilePart& part : parts) bytes += (part.rows.*values).size() * sizeof(T);
  auto all = std::make_unique_for_overwrite<std::byte[]>(bytes);
  std::byte* to = all.get();
  for (FilePart& part : parts) {
    const auto from = std::as_bytes(std::span(part.rows.*values));
    to = std::copy(from.begin(), from.end(), to);
    part.rows.*values = {};
  }
  return all;
}

// The same for each column of tokens or bytes.
std::vector<TokenRows> joined_tokens(std::vector<FilePart>& parts) {
  std::vector<TokenRows> all(parts.front().rows.tokens.size());
  for (std::size_t c = 0; c < all.size(); ++c) {
    TokenRows& to = all[c];
    std::size_t ids = 0;
    std::size_t raw = 0;
    std::size_t records = 0;
    for (const FilePart& part : parts) {
      ids += part.rows.tokens[c].ids.size();
      raw += part.rows.tokens[c].raw.size();
      records += part.rows.records;
    }
    to.ids.reserve(ids);
    to.raw.reserve(raw);
    to.ends.reserve(records);
    for (FilePart& part : parts) {
      const TokenRows from = std::exchange(part.rows.tokens[c], {});
      const std::uint64_t before = to.ends.empty() ? 0 : to.ends.back();
      for (const std::uint64_t end : from.ends) to.ends.push_back(before + end);
      to.ids.insert(to.ids.end(), from.ids.begin(), from.ids.end());
      to.raw.insert(to.raw.end(), from.raw.begin(), from.raw.end());
    }
  }
  return all;
}

// Of the records that the source selects.
std::vector<UnknownWords> find_unknown(const Source& source, const ColumnEncoder& encoder, const Contents& contents) {
  const auto* const inputs = reinterpret_cast<const float*>(contents.inputs.bytes.get());
  const auto* const categories = reinterpret_cast<const std::int32_t*>(contents.categories.bytes.get());
  const std::uint64_t end = source.end == 0 ? contents.records : std::min(source.end, contents.records);
  std::vector<std::uint64_t> numbers(encoder.unknown_names().size());
  for (std::uint64_t i = source.begin; i < end; ++i)
    encoder.count_unknown(inputs + i * encoder.inputs(), categories + i * encoder.categories(), numbers);
  return unknown_words(encoder.unknown_names(), numbers);
}

}  // namespace

Result<std::optional<Contents>> load_columns(const Source& source, const std::vector<std::string>& paths) {
  std::shared_ptr<const FittedColumns> fitted = source.fitted;
  if (fitted == nullptr) {
    Result<FittedFiles> found = fit_files(source, paths, FindLengths::kNo);
    if (!found) return tl::unexpected(found.error());
    fitted = std::make_shared<const FittedColumns>(std::move(found->columns));
  }
  const ColumnEncoder encoder(source.columns, *fitted, source.missing, source.target_taker,
                              source.takes_probabilities());
  const std::uint64_t memory = memory_budget(source.memory);
  Room room{memory, most_of_others(paths, memory)};
  Result<std::vector<FilePart>> parts =
      read_parallel<FilePart>(paths, [&](const std::string& path) { return encode_file(source, encoder, path, room); });
  if (room.is_exceeded) return std::nullopt;
  if (!parts) return tl::unexpected(parts.error());
  if (source.fitted == nullptr)
    if (Status ok = check_present(source.columns, *parts); !ok) return tl::unexpected(std::move(ok.error()));
  Contents contents;
  for (const FilePart& part : *parts) {
    contents.records += part.rows.records;
    contents.bytes_read += part.file_bytes;
  }
  contents.inputs = {DType::kFloat32, encoder.inputs(), joined(*parts, &EncodedRows::inputs)};
  contents.categories = {DType::kInt32, encoder.categories(), joined(*parts, &EncodedRows::categories)};
  contents.tokens = joined_tokens(*parts);
  contents.token_arrays = encoder.tokens();
  contents.bucket_by = source.bucket_by;
  if (encoder.has_labels() && encoder.has_whole_labels()) {
    contents.labels.resize(contents.records);
    const auto classes = joined(*parts, &EncodedRows::classes);
    std::memcpy(contents.labels.data(), classes.get(), contents.records * sizeof(std::int64_t));
  } else if (encoder.has_labels()) {
    contents.targets = {DType::kFloat32, 1, joined(*parts, &EncodedRows::targets)};
  }
  if (encoder.has_weights()) contents.weights = {DType::kFloat32, 1, joined(*parts, &EncodedRows::weights)};
  for (std::size_t i = 0; i < source.columns.size(); ++i)
    if (source.columns[i].kind == ColumnKind::kLabel) contents.label_names = fitted->columns[i].vocabulary;
  if (source.fitted != nullptr) contents.unknown = find_unknown(source, encoder, contents);
  contents.parts = parts_of(source.columns, *fitted);
  contents.fitted = std::move(fitted);
  return contents;
}

}  // namespace disttrain::input
