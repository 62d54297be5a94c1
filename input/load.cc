#include "input/load.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

#include "common/config/columns.h"
#include "input/find_files.h"
#include "input/memory_budget.h"
#include "input/number_text.h"
#include "input/order.h"

namespace disttrain::input {

namespace {

// A transformer predicts each token of a window but the first.
std::uint64_t stride_of_each_token_once(const DataSection& data) {
  return std::max(data.window, 2U) - 1;
}

template <typename Set, typename Loaded>
Result<std::unique_ptr<Dataset>> dataset_of(const Source& source, Result<Loaded> loaded) {
  if (!loaded) return tl::unexpected(std::move(loaded.error()));
  const std::uint64_t end = source.end == 0 ? loaded->records : source.end;
  if (Status ok = check_range(source, source.begin, end, loaded->records); !ok)
    return tl::unexpected(std::move(ok.error()));
  return std::make_unique<Set>(std::move(*loaded), source.begin, end, source.scale);
}

// [data.columns]: in memory if the files are small enough and aren't images. StreamedDataset keeps row groups of
// Parquet files in memory, if they fit. The order "blocks" needs the blocks of the files, so that all workers have the
// same order, whatever their memory.
Result<std::unique_ptr<Dataset>> load_with_columns(const Source& source) {
  const Result<std::vector<std::string>> paths = find_files(source, source.files, source.files_key);
  if (!paths) return tl::unexpected(paths.error());
  const bool has_images = std::any_of(source.columns.begin(), source.columns.end(), is_image);
  const bool is_large = estimated_bytes(*paths) > memory_budget(source.memory);
  const bool has_blocks = source.shuffle == ShuffleKind::kBlocks || source.format == DataFormat::kParquet;
  if (has_images || is_large || has_blocks) return load_streamed(source, *paths);
  Result<std::optional<Contents>> contents = load_columns(source, *paths);
  if (!contents.has_value()) return tl::unexpected(std::move(contents.error()));
  if (!contents->has_value()) return load_streamed(source, *paths);
  const std::uint64_t records = (*contents)->records;
  const std::uint64_t end = source.end == 0 ? records : source.end;
  if (Status ok = check_range(source, source.begin, end, records); !ok) return tl::unexpected(std::move(ok.error()));
  return std::make_unique<MemoryDataset>(std::move(**contents), source.begin, end, source.scale);
}

}  // namespace

Status check_range(const Source& source, std::uint64_t begin, std::uint64_t end, std::uint64_t found) {
  const std::string where = source.path + "/" + source.files;
  if (begin >= end || end > found)
    return fail(ErrorCode::kConfig, where + ": " + source.section + ".records = [" + std::to_string(begin) + ", " +
                                        std::to_string(end) + "], but the files have the records [0, " +
                                        std::to_string(found) + "]: choose a range within that");
  if (end - begin > kMaxRecords)
    return fail(ErrorCode::kConfig, where + ": " + std::to_string(end - begin) + " records, expected at most " +
                                        std::to_string(kMaxRecords) + ": choose fewer with " + source.section +
                                        ".records");
  return {};
}

Source training_source(const DataSection& data) {
  Source source;
  source.format = data.format;
  source.path = data.path;
  source.files = data.files;
  source.labels = data.labels;
  source.begin = data.records[0];
  source.end = data.records[1];
  source.scale = data.scale;
  source.columns = data.columns;
  source.missing = data.missing;
  source.tokenizer = data.tokenizer;
  source.window = data.window;
  source.stride = data.stride > 0 ? data.stride : stride_of_each_token_once(data);
  source.shuffle = data.shuffle;
  source.shuffle_window = data.shuffle_window;
  source.bucket_by = data.bucket_by;
  source.memory = data.memory;
  source.index = data.index;
  source.max_expansion = data.max_expansion;
  return source;
}

Source evaluation_source(const DataSection& data, const EvaluateSection& evaluate) {
  Source source;
  source.format = data.format;
  source.path = evaluate.path.empty() ? data.path : evaluate.path;
  source.files = evaluate.files;
  source.labels = evaluate.labels;
  source.begin = evaluate.records[0];
  source.end = evaluate.records[1];
  source.scale = data.scale;
  source.columns = data.columns;
  source.missing = data.missing;
  source.tokenizer = data.tokenizer;
  source.window = data.window;
  source.stride = stride_of_each_token_once(data);
  source.shuffle = ShuffleKind::kNone;
  source.memory = data.memory;
  source.index = data.index;
  source.max_expansion = data.max_expansion;
  source.section = "evaluate";
  source.path_key = source.path == data.path ? "data.path" : "evaluate.path";
  source.files_key = "evaluate.files";
  source.labels_key = "evaluate.labels";
  return source;
}

bool take_labels(const std::vector<double>& numbers, Contents& contents) {
  contents.labels.reserve(numbers.size());
  for (const double number : numbers) {
    if (!(std::abs(number) <= kLargestWhole) || number != static_cast<double>(static_cast<std::int64_t>(number))) {
      contents.labels.clear();
      return false;
    }
    contents.labels.push_back(static_cast<std::int64_t>(number));
  }
  return true;
}

Result<std::unique_ptr<Dataset>> load_dataset(const Source& source) {
  const std::string where = source.path + "/" + source.files;
  try {
    if (source.format == DataFormat::kText) return dataset_of<TextDataset>(source, load_text(source));
    if (!source.columns.empty()) return load_with_columns(source);
    return dataset_of<MemoryDataset>(source,
                                     source.format == DataFormat::kCsv ? load_csv(source) : load_arrays(source));
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::kConfig, where + ": these files need more memory than this host has");
  }
}

}  // namespace disttrain::input
