// The words of data that isn't kept in memory can't be numbered anew when all are known. So a first pass finds
// vocabularies, means and deviations, only for the columns that need it, and a second one makes the arrays. Means and
// deviations of files are combined by the formula of Chan, Golub and LeVeque, in the order of the files, so all workers
// find the same bits.
#include "input/fit_files.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "common/config/columns.h"
#include "input/column_values.h"
#include "input/encode_tokens.h"
#include "input/memory_budget.h"
#include "input/read_parallel.h"
#include "input/table_reader.h"
#include "input/table_slice.h"

namespace disttrain::input {

namespace {

struct RecordRange {
  std::uint64_t begin = 0;
  std::uint64_t end = std::numeric_limits<std::uint64_t>::max();
};

// Calls use(table, reader, number of the table's first record) for each table of the file. `use` may change the table.
// Returns the number of records of the file.
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
    const std::uint64_t first = std::exchange(records, records + table.records);
    if (Status ok = use(table, **reader, first); !ok) return tl::unexpected(std::move(ok.error()));
  }
}

// Finds the lengths of the records of one column of tokens or bytes.
class LengthFit {
 public:
  // `section` is one of `columns`. Both must outlive this object.
  LengthFit(const std::vector<ColumnSection>& columns, std::size_t section, const Tokenizer* tokenizer)
      : section_(columns[section]), tokenizer_(tokenizer) {
    for (std::size_t i = 0; i < section; ++i) from_ += has_values(columns[i]) ? 1 : 0;
  }

  Status take(const Table& table, const PlaceOf& place_of) {
    rows_.clear();
    const Status ok = encode_tokens(section_, tokenizer_, table.columns[from_], table.records, place_of, rows_);
    if (!ok) return ok;
    const std::vector<std::uint32_t> more = lengths_of(rows_, 0, table.records);
    lengths_.insert(lengths_.end(), more.begin(), more.end());
    return {};
  }
  std::vector<std::uint32_t>& lengths() { return lengths_; }

 private:
  const ColumnSection& section_;
  const Tokenizer* const tokenizer_;
  std::size_t from_ = 0;  // index of the table's column
  TokenRows rows_;
  std::vector<std::uint32_t> lengths_;
};

// The findings of a pass over one file, or over several files that follow each other.
struct Found {
  ColumnFit columns;
  std::vector<std::uint32_t> lengths;
};

// Without `lengths` they aren't wanted.
Result<Found> fit_file(const Source& source, const std::string& path, RecordRange range,
                       std::optional<LengthFit> lengths, WordRoom& room) {
  ColumnFit fit(source.columns, source.missing, source.target_taker, source.takes_probabilities(), &room);
  const auto take = [&](Table& table, TableReader& reader, std::uint64_t before) -> Status {
    const std::uint64_t begin = std::clamp(range.begin, before, before + table.records) - before;
    const std::uint64_t end = std::clamp(range.end, before, before + table.records) - before;
    if (begin >= end) return {};
    keep_records(table, begin, end);
    const auto place_of = [&reader, begin](std::uint64_t record) { return reader.place_of(begin + record); };
    if (Status ok = fit.take(table, place_of); !ok) return ok;
    return lengths ? lengths->take(table, place_of) : Status();
  };
  if (Result<std::uint64_t> read = for_each_table(source, path, take); !read) return tl::unexpected(read.error());
  return Found{std::move(fit), lengths ? std::move(lengths->lengths()) : std::vector<std::uint32_t>()};
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

Result<Found> read_files(const Source& source, const std::vector<std::string>& paths,
                         const std::optional<LengthFit>& lengths) {
  const Result<std::vector<RecordRange>> ranges = ranges_of(source, paths);
  if (!ranges) return tl::unexpected(ranges.error());
  WordRoom room(std::max(memory_budget(source.memory), memory_budget(0)));
  std::optional<Found> all;
  const auto fit = [&](const std::string& path) {
    return fit_file(source, path, (*ranges)[static_cast<std::size_t>(&path - paths.data())], lengths, room);
  };
  const auto merge = [&all](Found&& of_file) -> Status {
    if (!all.has_value()) {
      all.emplace(std::move(of_file));
      return {};
    }
    all->lengths.insert(all->lengths.end(), of_file.lengths.begin(), of_file.lengths.end());
    return all->columns.merge(std::move(of_file.columns));
  };
  // Words that several files have take room once for each of them until the files are merged. So groups are small.
  if (Status ok = read_in_groups<Found>(paths, kMaxReaderThreads, fit, merge); !ok)
    return tl::unexpected(std::move(ok.error()));
  return std::move(*all);
}

// The place of source.bucket_by in its columns, if the lengths of this column are wanted.
std::optional<std::size_t> column_with_lengths(const Source& source, FindLengths find_lengths) {
  if (find_lengths == FindLengths::kNo || source.bucket_by.empty()) return std::nullopt;
  for (std::size_t i = 0; i < source.columns.size(); ++i)
    if (source.columns[i].name == source.bucket_by) return i;
  return std::nullopt;
}

// A one-hot column makes as many numbers of a record as the training set has words.
Status check_one_hot(const std::vector<ColumnSection>& columns, const FittedColumns& fitted) {
  for (const ColumnSection& column : with_vocabularies(columns, fitted))
    if (is_one_hot(column) && category_size(column, 0) > kMaxOneHot)
      return fail(ErrorCode::kData,
                  key_of(column) + ".one_hot makes " + std::to_string(category_size(column, 0)) +
                      " numbers of each record, one for each word that the files have, expected at most " +
                      std::to_string(kMaxOneHot) + ": give the words that matter by " + key_of(column) +
                      ".vocabulary, or use a model that takes categories as they are");
  return {};
}

}  // namespace

Result<FittedFiles> fit_files(const Source& source, const std::vector<std::string>& paths, FindLengths find_lengths) {
  FittedFiles fitted;
  fitted.columns.columns.resize(source.columns.size());
  if (Status ok = load_tokenizers(source.columns, fitted.columns); !ok) return tl::unexpected(std::move(ok.error()));
  const std::vector<FittedColumn> with_tokenizers = fitted.columns.columns;
  const std::optional<std::vector<ColumnSection>> to_fit = columns_to_fit(source.columns);
  const std::optional<std::size_t> bucket_by = column_with_lengths(source, find_lengths);
  Source open = source;
  if (to_fit)
    open.columns = *to_fit;
  else
    for (ColumnSection& column : open.columns) column.kind = ColumnKind::kIgnore;
  if (bucket_by) open.columns[*bucket_by] = source.columns[*bucket_by];
  std::optional<Found> found;
  if (to_fit || bucket_by) {
    std::optional<LengthFit> lengths;
    if (bucket_by) lengths.emplace(open.columns, *bucket_by, with_tokenizers[*bucket_by].tokenizer.get());
    Result<Found> read = read_files(open, paths, lengths);
    if (!read) return tl::unexpected(std::move(read.error()));
    found = std::move(*read);
  }
  Result<FittedColumns> done = (found ? found->columns : ColumnFit({}, {}, "", false)).done(source.columns);
  if (!done) return tl::unexpected(std::move(done.error()));
  fitted.columns = std::move(*done);
  for (std::size_t i = 0; i < source.columns.size(); ++i) {
    fitted.columns.columns[i].tokenizer = with_tokenizers[i].tokenizer;
    fitted.columns.columns[i].tokenizer_hash = with_tokenizers[i].tokenizer_hash;
  }
  if (Status ok = check_one_hot(source.columns, fitted.columns); !ok) return tl::unexpected(std::move(ok.error()));
  if (found) fitted.lengths = std::move(found->lengths);
  return fitted;
}

}  // namespace disttrain::input
