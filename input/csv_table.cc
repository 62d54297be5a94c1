#include "input/csv_table.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace disttrain::input {

namespace {

constexpr std::uint64_t kBlockBytes = 1 << 20;

}  // namespace

CsvTables::CsvTables(ByteSource& file, const std::vector<WantedColumn>& wanted, bool has_header)
    : file_(file),
      wanted_(wanted),
      has_header_(has_header),
      buffer_(std::min(kBlockBytes, file.most_content_bytes() + 1)) {}

// Moves what isn't decoded yet to the begin of the buffer, and reads on behind it. A row that fills half of the buffer
// doubles it. find_csv_rows() refuses rows that are too long, and read_csv_header() blank lines without end, so the
// buffer stays small.
Status CsvTables::refill() {
  const std::size_t kept = end_ - begin_;
  if (kept > 0 && begin_ > 0) std::memmove(buffer_.data(), buffer_.data() + begin_, kept);
  if (kept * 2 > buffer_.size()) buffer_.resize(buffer_.size() * 2);
  const Result<std::size_t> got = file_.read(std::span(buffer_).subspan(kept));
  if (!got) return tl::unexpected(got.error());
  begin_ = 0;
  end_ = kept + *got;
  has_ended_ = end_ < buffer_.size();
  return {};
}

RecordBlock CsvTables::block() const {
  return {file_.path(), offset_, decoded_, line_, has_ended_, std::span(buffer_).subspan(begin_, end_ - begin_)};
}

Result<bool> CsvTables::next(Table& table) {
  while (!has_ended_ || begin_ != end_) {
    if (!has_ended_) {
      if (Status read = refill(); !read) return tl::unexpected(read.error());
    }
    if (!header_) {
      Result<std::optional<CsvHeader>> header = read_csv_header(block(), wanted_, has_header_);
      if (!header.has_value()) return tl::unexpected(header.error());
      if (!header->has_value()) continue;
      header_ = std::move(*header);
      begin_ += header_->bytes;
      offset_ += header_->bytes;
      line_ = header_->rows_line;
    }
    last_ = block();
    const Result<std::size_t> covered = find_csv_rows(last_, places_);
    if (!covered) return tl::unexpected(covered.error());
    const Status decoded = decode_csv_rows(last_, places_, *header_, wanted_, table);
    if (!decoded) return tl::unexpected(decoded.error());
    begin_ += *covered;
    offset_ += *covered;
    line_ = line_at(last_, *covered);
    decoded_ += places_.size();
    counted_to_ = 0;
    counted_line_ = last_.first_line;
    if (!places_.empty()) return true;
  }
  start_table(wanted_, table);
  return false;
}

std::uint64_t CsvTables::line_of(std::uint64_t record) {
  const std::size_t begin = places_[record].begin;
  if (begin < counted_to_) {
    counted_to_ = 0;
    counted_line_ = last_.first_line;
  }
  const auto between = last_.bytes.subspan(counted_to_, begin - counted_to_);
  counted_line_ += static_cast<std::uint64_t>(std::count(between.begin(), between.end(), std::byte{'\n'}));
  counted_to_ = begin;
  return counted_line_;
}

}  // namespace disttrain::input
