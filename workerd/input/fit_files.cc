#include "workerd/input/fit_files.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "workerd/input/encode_tokens.h"
#include "workerd/input/read_parallel.h"
#include "workerd/input/table_reader.h"
#include "workerd/input/table_slice.h"

namespace disttrain::input {

namespace {

struct RecordRange {
  std::uint64_t begin = 0;
  std::uint64_t end = std::numeric_limits<std::uint64_t>::max();
};

// Calls use(table, reader) for each table of the file. Returns the number of records.
template <typename Use>
Result<std::uint64_t> for_each_table(const Source& source, const std::string& path, const Use& use) {
  const Result<std::unique_ptr<TableReader>> reader = TableReader::open(source, path);
  if (!reader) return tl::unexpected(reader.error());
  Table table;
  std::uint64_t records = 0;
  for (;;) {
    const Result<bool> more = (*reader)->next(table);
    if (!more.has_value()) return tl::unexpected(more.error());
    if (!*more) return records;
    if (Status ok = use(table, **reader, records); !ok) return tl::unexpected(std::move(ok.error()));
    records += table.records;
  }
}

Result<ColumnFit> fit_file(const Source& source, const std::string& path, RecordRange range) {
  ColumnFit fit(source.columns);
  const auto take = [&](Table& table, TableReader& reader, std::uint64_t before) -> Status {
    const std::uint64_t begin = std::clamp(range.begin, before, before + table.records) - before;
    const std::uint64_t end = std::clamp(range.end, before, before + table.records) - before;
    if (begin >= end) return {};
    keep_records(table, begin, end);
    return fit.take(table, [&reader, begin](std::uint64_t record) { return reader.place_of(begin + record); });
  };
  if (Result<std::uint64_t> read = for_each_table(source, path, take); !read) return tl::unexpected(read.error());
  return fit;
}

// For each file, which of its records count.
Result<std::vector<RecordRange>> ranges_of(const Source& source, const std::vector<std::string>& paths) {
  if (source.begin == 0 && source.end == 0) return std::vector<RecordRange>(paths.size());
  const Result<std::vector<std::uint64_t>> counts =
      read_parallel<std::uint64_t>(paths, [&source](const std::string& path) {
        return for_each_table(source, path, [](Table&, TableReader&, std::uint64_t) { return Status(); });
      });
  if (!counts) return tl::unexpected(counts.error());
  std::vector<RecordRange> ranges;
  std::uint64_t before = 0;
  const std::uint64_t last = source.end == 0 ? std::numeric_limits<std::uint64_t>::max() : source.end;
  for (const std::uint64_t count : *counts) {
    ranges.push_back({std::max(source.begin, before) - before, std::max(last, before) - before});
    before += count;
  }
  return ranges;
}

// With the tokenizers that job.toml names.
Result<FittedColumns> with_tokenizers(const std::vector<ColumnSection>& columns, FittedColumns fitted) {
  if (Status ok = load_tokenizers(columns, fitted); !ok) return tl::unexpected(std::move(ok.error()));
  return fitted;
}

}  // namespace

Result<FittedColumns> fit_files(const Source& source, const std::vector<std::string>& paths) {
  const std::optional<std::vector<ColumnSection>> columns = columns_to_fit(source.columns);
  if (!columns) return with_tokenizers(source.columns, ColumnFit({}).done(source.columns));
  Source open = source;
  open.columns = *columns;
  const Result<std::vector<RecordRange>> ranges = ranges_of(open, paths);
  if (!ranges) return tl::unexpected(ranges.error());
  std::optional<ColumnFit> all;
  const auto fit = [&](const std::string& path) {
    return fit_file(open, path, (*ranges)[static_cast<std::size_t>(&path - paths.data())]);
  };
  const auto merge = [&all](ColumnFit&& of_file) -> Status {
    if (all.has_value()) return all->merge(std::move(of_file));
    all.emplace(std::move(of_file));
    return {};
  };
  if (Status ok = read_in_groups<ColumnFit>(paths, fit, merge); !ok) return tl::unexpected(std::move(ok.error()));
  return with_tokenizers(source.columns, all->done(source.columns));
}

}  // namespace disttrain::input
