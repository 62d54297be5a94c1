// Parquet has no records at places of a file, so RecordFormat doesn't fit it. A set of Parquet files that fits into
// memory is a StreamedDataset whose cache never drops a block. So each row group is decoded once into the rows that
// batches copy, and not copied into one array of the whole set.
//
// Half of the time of reading went into memory that the kernel had to clear. Therefore the memory of dropped blocks is
// used again, and large arrays ask for huge pages. If batches need fewer row groups at a time than there are
// processors, threads divide the columns of a row group. They can't divide its records, because a column chunk is
// decoded from its begin. Files aren't mapped: a file that is truncated meanwhile would end the process.
#include "input/parquet/parquet_records.h"

#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "common/check.h"
#include "common/os/crash_stack.h"
#include "input/column_values.h"
#include "input/parquet/parquet_file.h"
#include "input/read_parallel.h"

namespace disttrain::input {

namespace {

struct GroupsOfFile {
  std::vector<std::uint64_t> records;  // of each row group
  FileStamp stamp;
  ParquetFooter footer;
  std::uint64_t footer_bytes = 0;
  std::vector<bool> has_values;  // for each of wanted_columns(): not all of them are null
};

// One file of the data set.
struct KnownFile {
  std::string path;
  FileStamp stamp;
  std::uint64_t first_record = 0;
  std::uint64_t records = 0;
  ParquetFooter footer;  // null: it isn't kept
  std::unique_ptr<CheckedTimestamps> checked = std::make_unique<CheckedTimestamps>();
};

struct RowGroup {
  std::uint64_t first_record = 0;
  std::size_t file = 0;
  std::size_t number = 0;  // within the file
};

// Decoding the footer of a file with many row groups takes longer than reading one of them. In memory a footer takes
// some times as many bytes as in its file.
constexpr std::uint64_t kMostFooterBytes = std::uint64_t{16} << 20;
// Starting a thread takes as long as reading about ten thousand values.
constexpr std::uint64_t kMinValuesOfThread = 100'000;

// Reads the row groups of several files.
class ParquetRecords final : public RecordSource {
 public:
  ParquetRecords(const Source& source, const std::vector<std::string>& paths, std::vector<GroupsOfFile> groups)
      : wanted_(wanted_columns(source.columns, source.missing)) {
    std::string hashed;
    std::uint64_t footer_bytes = 0;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      KnownFile file{paths[i], groups[i].stamp, records_, 0, nullptr};
      footer_bytes += groups[i].footer_bytes;
      if (footer_bytes <= kMostFooterBytes) file.footer = std::move(groups[i].footer);
      hashed += paths[i].substr(paths[i].starts_with(source.path) ? source.path.size() : 0);
      hashed += '\0' + std::to_string(file.stamp.bytes);
      for (std::size_t number = 0; number < groups[i].records.size(); ++number) {
        const std::uint64_t count = groups[i].records[number];
        hashed += ' ' + std::to_string(count);
        if (count == 0) continue;
        groups_.push_back({records_, i, number});
        records_ += count;
      }
      file.records = records_ - file.first_record;
      files_.push_back(std::move(file));
    }
    hash_ = XXH3_64bits(hashed.data(), hashed.size());
    threads_ = threads_for(source);
  }

  std::uint64_t records() const override { return records_; }
  std::uint64_t hash() const override { return hash_; }
  std::string notice() const override { return ""; }
  std::string place_of(std::uint64_t record) const override {
    const KnownFile& file = file_of(record);
    return "data file \"" + file.path + "\", record " + std::to_string(record - file.first_record);
  }
  std::uint64_t end_of_file(std::uint64_t record) const override {
    const KnownFile& file = file_of(record);
    return file.first_record + file.records;
  }
  std::vector<std::uint64_t> blocks() const override {
    std::vector<std::uint64_t> begins;
    for (const RowGroup& group : groups_) begins.push_back(group.first_record);
    return begins;
  }
  // A dictionary may have a text once that many records have.
  Result<std::uint64_t> content_bytes(std::uint64_t, std::uint64_t) const override {
    return std::numeric_limits<std::uint64_t>::max();
  }
  std::string needs_blocks() const override { return "the records of parquet files can't be read one by one"; }
  std::string smaller_blocks() const override { return "write the files with smaller row groups"; }
  std::unique_ptr<RecordReader> make_reader(const ColumnEncoder& encoder, DataFigures& figures) const override;

 private:
  class Reader;

  // Batches need so many row groups at the same time that each processor has one to read, or several processors read
  // one.
  std::size_t threads_for(const Source& source) const {
    const std::uint64_t at_once = source.shuffle == ShuffleKind::kNone     ? 1
                                  : source.shuffle == ShuffleKind::kBlocks ? source.shuffle_window
                                                                           : groups_.size();
    const std::uint64_t cores = std::clamp<std::uint64_t>(std::thread::hardware_concurrency(), 1, kMaxReaderThreads);
    const std::uint64_t most_values = records_ * wanted_.size() / groups_.size() / kMinValuesOfThread;
    return std::clamp<std::uint64_t>(cores / std::clamp<std::uint64_t>(at_once, 1, groups_.size()), 1,
                                     std::max<std::uint64_t>(1, std::min<std::uint64_t>(wanted_.size(), most_values)));
  }

  const RowGroup& group_of(std::uint64_t record) const {
    const auto after =
        std::upper_bound(groups_.begin(), groups_.end(), record,
                         [](std::uint64_t number, const RowGroup& group) { return number < group.first_record; });
    return *std::prev(after);
  }
  const KnownFile& file_of(std::uint64_t record) const { return files_[group_of(record).file]; }

  const std::vector<WantedColumn> wanted_;
  std::vector<KnownFile> files_;
  std::vector<RowGroup> groups_;  // those with records, in order
  std::uint64_t records_ = 0;
  std::uint64_t hash_ = 0;
  std::size_t threads_ = 1;  // that read a row group, each some of its columns
};

class ParquetRecords::Reader final : public RecordReader {
 public:
  Reader(const ParquetRecords& source, const ColumnEncoder& encoder, DataFigures& figures)
      : source_(source), encoder_(encoder), figures_(figures), parts_(source.threads_) {}

  Status read(std::uint64_t first, std::uint64_t count, const Draw&, EncodedRows& rows) override {
    const RowGroup& group = source_.group_of(first);
    DISTTRAIN_CHECK_EQ(group.first_record, first);
    const std::uint64_t old = rows.records;
    encoder_.add_rows(count, rows);
    const auto read_part = [&](std::size_t number) -> Status {
      const std::size_t columns = source_.wanted_.size();
      try {
        return read_columns(parts_[number], group, columns * number / parts_.size(),
                            columns * (number + 1) / parts_.size(), old, count, rows);
      } catch (const std::bad_alloc&) {
        return fail(ErrorCode::kConfig, source_.place_of(first) +
                                            ": its row group needs more memory than this host has: write the file with "
                                            "smaller row groups");
      }
    };
    std::vector<Status> done(parts_.size());
    {
      std::vector<std::jthread> others;
      try {
        while (others.size() + 1 < parts_.size())
          others.emplace_back([&done, &read_part, i = others.size() + 1] {
            use_crash_stack();
            done[i] = read_part(i);
          });
      } catch (const std::system_error&) {
        // The system refuses a thread. This one reads the other parts.
      }
      done[0] = read_part(0);
      for (std::size_t i = others.size() + 1; i < parts_.size(); ++i) done[i] = read_part(i);
    }
    for (Status& status : done)
      if (!status) return std::move(status);
    encoder_.encode_crosses(count, encoder_.rows_at(rows, old));
    return {};
  }

 private:
  // Some of the columns, which one thread reads.
  struct Part {
    std::size_t number = 0;                  // of the file
    std::atomic<std::uint64_t> read_ns = 0;  // of reading its file, since the last call of timed()
    std::unique_ptr<ParquetFile> file;
    Table table;
  };

  // Returns decode(), and counts its time. Parquet reads bytes while it decodes.
  template <typename Decode>
  auto timed(Part& part, const Decode& decode) const {
    std::atomic<std::uint64_t> took_ns = 0;
    auto decoded = [&decode, &took_ns] {
      const StageTimer timer(took_ns);
      return decode();
    }();
    const std::uint64_t read_ns = part.read_ns.exchange(0);
    figures_.read_ns.fetch_add(read_ns, std::memory_order_relaxed);
    figures_.decode_ns.fetch_add(took_ns - std::min<std::uint64_t>(took_ns, read_ns), std::memory_order_relaxed);
    return decoded;
  }

  // The row group has more records.
  Status next_table(Part& part) const {
    const Result<bool> more = timed(part, [&part] { return part.file->next(part.table); });
    if (!more.has_value()) return tl::unexpected(more.error());
    DISTTRAIN_CHECK(*more);
    return {};
  }

  // Writes the wanted columns [begin, end) of the row group, of `count` records, to the rows from `first_row` on.
  Status read_columns(Part& part, const RowGroup& group, std::size_t begin, std::size_t end, std::uint64_t first_row,
                      std::uint64_t count, EncodedRows& rows) const {
    const KnownFile& about = source_.files_[group.file];
    if (part.file == nullptr || part.number != group.file) {
      part.file.reset();
      Result<std::unique_ptr<ParquetFile>> opened =
          ParquetFile::open(about.path, source_.wanted_,
                            {.counts = {.read_ns = &part.read_ns, .bytes_read = &figures_.bytes_read},
                             .footer = about.footer,
                             .checked = about.checked.get()});
      if (!opened) return tl::unexpected(std::move(opened.error()));
      part.file = std::move(*opened);
      part.number = group.file;
    }
    if (part.file->stamp() != about.stamp) return changed(about);
    const auto its_rows = [&part, &group] { return part.file->groups()[group.number]; };
    if (group.number >= part.file->groups().size() || its_rows() != count) return changed(about);
    if (Status ok = timed(part, [&] { return part.file->start(group.number, begin, end); }); !ok) return ok;
    const std::uint64_t before = group.first_record - about.first_record;
    for (std::uint64_t done = 0; done < count; done += part.table.records) {
      if (Status ok = next_table(part); !ok) return ok;
      const StageTimer timer(figures_.transform_ns);
      const auto place_of = [&](std::uint64_t record) {
        return "data file \"" + about.path + "\", record " + std::to_string(before + done + record);
      };
      Status ok = encoder_.encode_columns(part.table, begin, end, place_of, encoder_.rows_at(rows, first_row + done));
      if (!ok) return ok;
    }
    return {};
  }

  static tl::unexpected<Error> changed(const KnownFile& file) {
    return fail(ErrorCode::kData, file.path +
                                      ": was changed while the job uses it: it has another size, time of "
                                      "modification or number of records than when the job was started: start "
                                      "the job again when the file is complete");
  }

  const ParquetRecords& source_;
  const ColumnEncoder& encoder_;
  DataFigures& figures_;
  std::vector<Part> parts_;
};

std::unique_ptr<RecordReader> ParquetRecords::make_reader(const ColumnEncoder& encoder, DataFigures& figures) const {
  return std::make_unique<Reader>(*this, encoder, figures);
}

}  // namespace

Result<std::unique_ptr<RecordSource>> open_parquet_records(const Source& source,
                                                           const std::vector<std::string>& paths) {
  const std::vector<WantedColumn> wanted = wanted_columns(source.columns, source.missing);
  Result<std::vector<GroupsOfFile>> groups = read_parallel<
      GroupsOfFile>(paths, [&](const std::string& path) -> Result<GroupsOfFile> {
    if (source.is_cancelled && source.is_cancelled()) return fail(ErrorCode::kTemporary, path + ": cancelled");
    const Result<std::unique_ptr<ParquetFile>> file = ParquetFile::open(path, wanted);
    if (!file) return tl::unexpected(file.error());
    const std::vector<std::uint64_t>& records = (*file)->groups();
    if (std::all_of(records.begin(), records.end(), [](std::uint64_t count) { return count == 0; }))
      return fail(ErrorCode::kData, path + ": has no records, expected at least one: fetch it again or leave it out");
    std::vector<bool> has_values;
    for (std::size_t c = 0; c < wanted.size(); ++c) has_values.push_back(!(*file)->is_all_null(c));
    return GroupsOfFile{records, (*file)->stamp(), (*file)->footer(), (*file)->footer_bytes(), std::move(has_values)};
  });
  if (!groups) return tl::unexpected(std::move(groups.error()));
  if (source.fitted == nullptr)
    if (Status ok = check_present(source.columns, *groups); !ok) return tl::unexpected(std::move(ok.error()));
  return std::make_unique<ParquetRecords>(source, paths, std::move(*groups));
}

}  // namespace disttrain::input
