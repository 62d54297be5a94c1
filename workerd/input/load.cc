#include "workerd/input/load.h"

#include <new>
#include <utility>

#include "workerd/input/order.h"

namespace disttrain::input {

Source training_source(const DataSection& data) {
  Source source;
  source.format = data.format;
  source.path = data.path;
  source.files = data.files;
  source.labels = data.labels;
  source.begin = data.records[0];
  source.end = data.records[1];
  source.scale = data.scale;
  return source;
}

Source evaluation_source(const DataSection& data, const EvaluateSection& evaluate) {
  Source source;
  source.format = data.format;
  source.path = evaluate.path.empty() ? data.path : evaluate.path;
  source.files = evaluate.files;
  source.labels = evaluate.labels;
  source.scale = data.scale;
  source.section = "evaluate";
  source.path_key = source.path == data.path ? "data.path" : "evaluate.path";
  return source;
}

bool take_labels(const std::vector<double>& numbers, Contents& contents) {
  constexpr double kLargest = 1ull << 53;  // float64 can represent every whole number up to this one
  contents.labels.reserve(numbers.size());
  for (const double number : numbers) {
    if (!(number >= 0.0 && number <= kLargest) || number != static_cast<double>(static_cast<std::int64_t>(number))) {
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
    Result<Contents> contents = source.format == DataFormat::kCsv ? load_csv(source) : load_arrays(source);
    if (!contents) return tl::unexpected(std::move(contents.error()));
    const std::uint64_t found = contents->records;
    const std::uint64_t end = source.end == 0 ? found : source.end;
    if (source.begin >= end || end > found) {
      return fail(ErrorCode::kConfig, where + ": " + source.section + ".records = [" + std::to_string(source.begin) +
                                          ", " + std::to_string(end) + "], but the files have the records [0, " +
                                          std::to_string(found) + "]: choose a range within that");
    }
    if (end - source.begin > kMaxRecords) {
      return fail(ErrorCode::kConfig, where + ": " + std::to_string(end - source.begin) +
                                          " records, expected at most " + std::to_string(kMaxRecords) +
                                          ": choose fewer with " + source.section + ".records");
    }
    return std::make_unique<MemoryDataset>(std::move(*contents), source.begin, end, source.scale);
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::kConfig, where + ": these files need more memory than this host has");
  }
}

}  // namespace disttrain::input
