// Data files are read with pread(), because a mapped file that becomes shorter ends the process (SIGBUS). Each read
// compares the file's size and time of modification with those in the index, so a file that changes is an error with
// its name.
#include "input/indexed_records.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "input/encode_images.h"
#include "input/file_reader.h"
#include "input/record_stream.h"

namespace disttrain::input {

namespace {

constexpr std::string_view kUtf8Mark = "\xEF\xBB\xBF";

// Whether a line may begin at byte `offset` of a file. `before` are the bytes before it: kUtf8Mark.size() of them,
// or all that the file has.
bool begins_line(std::uint64_t offset, std::string_view before) {
  const bool is_first = offset == 0 || (offset == kUtf8Mark.size() && before == kUtf8Mark);
  return is_first || before.ends_with('\n');
}

// The bytes of the line end, LF or CRLF, with which `behind` begins. `behind` are the two bytes behind a line, or fewer
// at the end of the file. Nothing if the line doesn't end there.
std::optional<std::size_t> line_end_bytes(std::string_view behind) {
  if (behind.empty() || behind == "\r") return behind.size();
  if (behind.front() == '\n') return 1;
  return behind == "\r\n" ? std::optional<std::size_t>(2) : std::nullopt;
}

}  // namespace

class IndexedRecords::Reader final : public RecordReader {
 public:
  Reader(const IndexedRecords& source, const ColumnEncoder& encoder, DataFigures& figures)
      : source_(source), index_(*source.index_), format_(*source.format_), encoder_(encoder), figures_(figures) {}

  Status read(std::uint64_t first, std::uint64_t count, const Draw& draw, EncodedRows& rows) override {
    const IndexedFile& file = index_.files()[index_.file_of(first)];
    return file.is_packed ? read_packed(first, count, rows) : read_places(file, first, count, draw, rows);
  }

 private:
  Status read_places(const IndexedFile& file, std::uint64_t first, std::uint64_t count, const Draw& draw,
                     EncodedRows& rows) {
    if (Status ok = index_.read(first, count, index_places_); !ok) return ok;
    const std::uint64_t begin = index_places_.front().offset;
    const IndexedPlace& last = index_places_.back();
    const std::uint64_t end = last.offset + last.bytes + format_.tail_bytes();
    if (last.offset > file.bytes || last.bytes > file.bytes || end < begin || end > file.bytes + format_.tail_bytes())
      return damaged(first);
    // The bytes before and behind lines show whether they begin and end there.
    const bool has_lines = format_.has_lines();
    const std::uint64_t before = has_lines ? std::min<std::uint64_t>(begin, kUtf8Mark.size()) : 0;
    const std::uint64_t behind = has_lines ? std::min<std::uint64_t>(file.bytes - end, 2) : 0;
    // The last record may lack its tail.
    const std::uint64_t readable = std::min(end + behind, std::max(file.bytes, begin));
    bytes_.resize(before + readable - begin);
    {
      const StageTimer timer(figures_.read_ns);
      if (Status ok = source_.files_.read(index_.file_of(first), begin - before, bytes_); !ok) return ok;
    }
    figures_.bytes_read.fetch_add(bytes_.size(), std::memory_order_relaxed);
    bytes_.resize(before + (end - begin) + behind);
    places_.clear();
    for (std::uint64_t i = 0; i < count; ++i) {
      const IndexedPlace& place = index_places_[i];
      if (place.offset < begin || place.bytes > end - begin || place.offset + place.bytes > last.offset + last.bytes)
        return damaged(first + i);
      places_.push_back({place.offset - begin, place.bytes});
    }
    const RecordBlock block{.path = file.path,
                            .offset = begin,
                            .first_record = first - file.first_record,
                            .is_last = end >= file.bytes,
                            .bytes = std::span(bytes_).subspan(before, end - begin)};
    {
      const StageTimer timer(figures_.decode_ns);
      if (has_lines)
        if (Status ok = check_lines(block, before, behind, first); !ok) return ok;
      if (Status ok = format_.decode(block, places_, table_); !ok) return ok;
    }
    const StageTimer timer(figures_.transform_ns);
    return encoder_.encode(table_, [&](std::uint64_t record) { return source_.place_of(first + record); }, rows,
                           {.encoder = &images_, .draw = draw, .first_record = first});
  }

  // Checks that the lines of the block, which begins `before` bytes behind that of bytes_, are where places_ says, and
  // that no others are between them. bytes_ has `behind` more bytes. `first` is the number of the first record.
  Status check_lines(const RecordBlock& block, std::size_t before, std::size_t behind, std::uint64_t first) {
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
    const std::optional<std::size_t> end = line_end_bytes(text.substr(text.size() - behind));
    if (!begins_line(block.offset, text.substr(0, before)) || !end) return moved(first);
    if (are_all_lines(text.substr(before, block.bytes.size()))) return {};
    RecordBlock lines = block;
    lines.is_last = true;
    lines.bytes = std::span(bytes_).subspan(before, block.bytes.size() + *end);
    const Result<std::size_t> covered = format_.find(lines, found_);
    if (!covered) return moved(first);
    const auto differ = std::mismatch(
        places_.begin(), places_.end(), found_.begin(), found_.end(),
        [](const RecordPlace& a, const RecordPlace& b) { return a.begin == b.begin && a.bytes == b.bytes; });
    if (differ.first == places_.end() && differ.second == found_.end()) return {};
    return moved(first + static_cast<std::uint64_t>(differ.first - places_.begin()));
  }

  // Whether each record of places_ is one line of the block, and no other lines are between them. Usually this is so,
  // and it shows at less cost than finding the lines again. False: there may be blank lines, comments, or line ends in
  // quotes.
  bool are_all_lines(std::string_view block) const {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const std::string_view rest = block.substr(std::min(places_[i].begin, block.size()));
      const std::string_view line = rest.substr(0, places_[i].bytes);
      if (line.find('\n') != std::string_view::npos) return false;
      if (i + 1 == places_.size()) return true;
      const std::size_t gap = line_end_bytes(rest.substr(line.size(), 2)).value_or(0);
      if (gap == 0 || places_[i].begin + line.size() + gap != places_[i + 1].begin) return false;
    }
    return true;
  }

  // If the file has another size or time now, this is the error.
  Status moved(std::uint64_t record) const {
    if (Status same = source_.files_.check_unchanged(index_.file_of(record)); !same) return same;
    return fail(ErrorCode::kData,
                source_.place_of(record) +
                    ": isn't where the index has it, so the file was changed after it was indexed, although its size "
                    "and its time of modification are the same: remove the index (.disttrain-*.index) and start the "
                    "job again, which builds it anew");
  }

  tl::unexpected<Error> damaged(std::uint64_t record) const {
    return fail(ErrorCode::kData,
                source_.place_of(record) + ": its index is damaged: remove the index (.disttrain-*.index)");
  }

  // The records are all those of the file. If the file was changed, this is the error, and not what follows from it.
  Status read_packed(std::uint64_t first, std::uint64_t count, EncodedRows& rows) {
    const std::size_t file = index_.file_of(first);
    const std::uint64_t before = rows.records;
    Status decoded = read_whole(index_.files()[file], rows);
    if (Status same = source_.files_.check_unchanged(file); !same) return same;
    if (!decoded) return decoded;
    if (rows.records - before != count) return damaged(first);
    return {};
  }

  // Reads a compressed file from its begin.
  Status read_whole(const IndexedFile& file, EncodedRows& rows) {
    const Result<std::unique_ptr<FileReader>> reader = FileReader::open(file.path, {}, source_.max_expansion_);
    if (!reader) return tl::unexpected(reader.error());
    RecordStream stream(**reader, format_);
    for (;;) {
      const Result<bool> more = [&] {
        const StageTimer timer(figures_.read_ns);
        return stream.next();
      }();
      if (!more.has_value()) return tl::unexpected(more.error());
      if (!*more) break;
      {
        const StageTimer timer(figures_.decode_ns);
        if (Status ok = format_.decode(stream.block(), stream.records(), table_); !ok) return ok;
      }
      const StageTimer timer(figures_.transform_ns);
      const Status ok = encoder_.encode(
          table_, [&](std::uint64_t record) { return name_of(stream.block(), record); }, rows);
      if (!ok) return ok;
    }
    figures_.bytes_read.fetch_add((*reader)->file_bytes(), std::memory_order_relaxed);
    return {};
  }

  const IndexedRecords& source_;
  const RecordIndex& index_;
  const RecordFormat& format_;
  const ColumnEncoder& encoder_;
  DataFigures& figures_;
  // These members keep their memory from one call to the next.
  std::vector<IndexedPlace> index_places_;
  std::vector<std::byte> bytes_;
  std::vector<RecordPlace> places_;
  std::vector<RecordPlace> found_;
  Table table_;
  ImageEncoder images_;
};

Result<std::unique_ptr<RecordSource>> IndexedRecords::open(const Source& source,
                                                           const std::vector<std::string>& paths) {
  std::unique_ptr<RecordFormat> format = make_record_format(format_options(source));
  if (Status ok = format->prepare(paths.front()); !ok) return tl::unexpected(std::move(ok.error()));
  // Without blocks, the list of their begins may be as large as the index.
  const std::uint64_t block_bytes = source.shuffle == ShuffleKind::kBlocks ? kStreamedBlockBytes : 0;
  const bool has_header = source.format == DataFormat::kCsv && has_header_line(source.columns);
  Result<std::unique_ptr<RecordIndex>> index = RecordIndex::open({.format = source.format,
                                                                  .has_header = has_header,
                                                                  .data_folder = source.path,
                                                                  .index_folder = source.index,
                                                                  .paths = paths,
                                                                  .block_bytes = block_bytes,
                                                                  .max_expansion = source.max_expansion,
                                                                  .is_cancelled = source.is_cancelled},
                                                                 *format);
  if (!index) return tl::unexpected(std::move(index.error()));
  return std::make_unique<IndexedRecords>(std::move(*index), std::move(format), source.max_expansion);
}

IndexedRecords::IndexedRecords(std::unique_ptr<RecordIndex> index, std::unique_ptr<RecordFormat> format,
                               std::uint64_t max_expansion)
    : index_(std::move(index)), format_(std::move(format)), max_expansion_(max_expansion), files_(*index_) {
  const auto& files = index_->files();
  has_packed_ = std::any_of(files.begin(), files.end(), [](const IndexedFile& file) { return file.is_packed; });
}

std::string IndexedRecords::place_of(std::uint64_t record) const {
  const IndexedFile& file = index_->files()[index_->file_of(record)];
  return "data file \"" + file.path + "\", record " + std::to_string(record - file.first_record);
}

std::uint64_t IndexedRecords::end_of_file(std::uint64_t record) const {
  const IndexedFile& file = index_->files()[index_->file_of(record)];
  return file.first_record + file.records;
}

Result<std::uint64_t> IndexedRecords::content_bytes(std::uint64_t first, std::uint64_t count) const {
  std::vector<IndexedPlace> begin;
  std::vector<IndexedPlace> last;
  if (Status ok = index_->read(first, 1, begin); !ok) return tl::unexpected(std::move(ok.error()));
  if (Status ok = index_->read(first + count - 1, 1, last); !ok) return tl::unexpected(std::move(ok.error()));
  return last[0].offset + last[0].bytes - begin[0].offset;
}

std::string IndexedRecords::needs_blocks() const {
  return has_packed_ ? "the records of compressed files can't be read one by one" : "";
}

std::string IndexedRecords::smaller_blocks() const {
  return has_packed_ ? "divide the compressed files into smaller ones" : "";
}

std::unique_ptr<RecordReader> IndexedRecords::make_reader(const ColumnEncoder& encoder, DataFigures& figures) const {
  return std::make_unique<Reader>(*this, encoder, figures);
}

}  // namespace disttrain::input
