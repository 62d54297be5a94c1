#include "input/tar_samples.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "input/column_text.h"
#include "input/number_text.h"

namespace disttrain::input {

namespace {

constexpr std::size_t kTarBlockBytes = 512;

// A tar file, or a piece of one that begins with a header, in memory.
class Tar {
 public:
  enum class Next : std::uint8_t { kMember, kEnd, kDamaged };

  explicit Tar(std::span<const std::byte> bytes) : bytes_(bytes), archive_(archive_read_new(), &archive_read_free) {
    archive_read_support_format_tar(archive_.get());
    // Without this, libarchive stops at the first block of zeros. A block may begin with some.
    archive_read_set_format_option(archive_.get(), "tar", "read_concatenated_archives", "1");
    is_open_ = archive_read_open(archive_.get(), this, nullptr, &give_bytes, nullptr) == ARCHIVE_OK;
  }
  Tar(const Tar&) = delete;
  Tar& operator=(const Tar&) = delete;

  // At the end of the bytes, both kEnd and kDamaged are possible.
  Next next() {
    if (bytes_.empty()) return Next::kEnd;
    if (!is_open_) return Next::kDamaged;
    const int answer = archive_read_next_header(archive_.get(), &entry_);
    if (answer == ARCHIVE_EOF) return Next::kEnd;
    return answer == ARCHIVE_OK || answer == ARCHIVE_WARN ? Next::kMember : Next::kDamaged;
  }

  // Whether libarchive asked for bytes behind the last one.
  bool asked_for_more() const { return asked_for_more_; }
  std::string problem() const {
    const char* const text = archive_error_string(archive_.get());
    return text == nullptr ? "no reason given" : text;
  }

  // Of the current member: where its first header begins, and its name; "" if it isn't a plain file.
  std::size_t begin() const { return static_cast<std::size_t>(archive_read_header_position(archive_.get())); }
  std::string_view name() const {
    if (archive_entry_filetype(entry_) != AE_IFREG || archive_entry_hardlink(entry_) != nullptr) return "";
    const char* name = archive_entry_pathname(entry_);
    if (name == nullptr) name = archive_entry_pathname_utf8(entry_);
    return name == nullptr ? "" : name;
  }

  // The content of the member. Returns nothing if it is damaged. It points into the bytes if they have it in one piece.
  std::optional<std::string_view> content(Texts& texts) {
    if (archive_entry_sparse_count(entry_) > 0) return std::nullopt;
    const la_int64_t size = archive_entry_size(entry_);
    if (size < 0 || static_cast<std::uint64_t>(size) > bytes_.size()) return std::nullopt;
    const void* piece = nullptr;
    std::size_t piece_bytes = 0;
    la_int64_t offset = 0;
    std::string_view all;
    for (;;) {
      const int answer = archive_read_data_block(archive_.get(), &piece, &piece_bytes, &offset);
      if (answer == ARCHIVE_EOF) break;
      if (answer != ARCHIVE_OK || static_cast<std::uint64_t>(offset) != all.size()) return std::nullopt;
      const std::string_view found(static_cast<const char*>(piece), piece_bytes);
      if (piece_bytes == static_cast<std::size_t>(size) && is_ours(found)) {
        all = found;
        continue;
      }
      if (all.size() + piece_bytes > static_cast<std::size_t>(size)) return std::nullopt;
      char* const joined = texts.add(all.size() + piece_bytes);
      std::copy(found.begin(), found.end(), std::copy(all.begin(), all.end(), joined));
      all = {joined, all.size() + piece_bytes};
    }
    if (all.size() != static_cast<std::size_t>(size)) return std::nullopt;
    return all;
  }

 private:
  static la_ssize_t give_bytes(archive* /*archive*/, void* tar, const void** out) {
    auto* const self = static_cast<Tar*>(tar);
    if (self->has_given_) {
      self->asked_for_more_ = true;
      return 0;
    }
    self->has_given_ = true;
    *out = self->bytes_.data();
    return static_cast<la_ssize_t>(self->bytes_.size());
  }

  bool is_ours(std::string_view text) const {
    const auto* const begin = reinterpret_cast<const char*>(bytes_.data());
    return !text.empty() && text.data() >= begin && text.data() + text.size() <= begin + bytes_.size();
  }

  std::span<const std::byte> bytes_;
  std::unique_ptr<archive, int (*)(archive*)> archive_;
  archive_entry* entry_ = nullptr;  // belongs to archive_
  bool is_open_ = false;
  bool has_given_ = false;
  bool asked_for_more_ = false;
};

struct MemberName {
  std::string_view key;
  std::string_view extension;
};

// Returns nothing if the member belongs to no sample.
std::optional<MemberName> parts_of(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  const std::size_t file = slash == std::string_view::npos ? 0 : slash + 1;
  const std::size_t dot = name.find('.', file);
  if (dot == std::string_view::npos || dot == file || dot + 1 == name.size()) return std::nullopt;
  return MemberName{name.substr(0, dot), name.substr(dot + 1)};
}

bool is_same_in_lower_case(std::string_view extension, std::string_view lower) {
  return std::equal(extension.begin(), extension.end(), lower.begin(), lower.end(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + ('a' - 'A') : a) == b; });
}

// Whether the extension is one of the column's, which have semicolons between them.
bool fits(std::string_view extension, std::string_view column) {
  while (!column.empty()) {
    const std::size_t end = std::min(column.find(';'), column.size());
    if (is_same_in_lower_case(extension, column.substr(0, end))) return true;
    column.remove_prefix(std::min(end + 1, column.size()));
  }
  return false;
}

tl::unexpected<Error> damaged(const RecordBlock& block, std::uint64_t record, std::size_t at, const std::string& why) {
  return fail(ErrorCode::kData, name_of(block, record) + ": the tar file is damaged or truncated near byte " +
                                    std::to_string(block.offset + at) + " (libarchive: " + why +
                                    "), expected a member of a tar file: copy the file again");
}

bool ends_with_zeros(std::span<const std::byte> bytes) {
  if (bytes.size() < kTarBlockBytes) return false;
  const auto end = bytes.last(kTarBlockBytes);
  return std::all_of(end.begin(), end.end(), [](std::byte byte) { return byte == std::byte{0}; });
}

// Appends the value of a member to a column. Returns what is wrong with it.
std::optional<std::string> take_value(std::string_view content, const WantedColumn& wanted, TableColumn& column) {
  switch (column.kind) {
    case ValueKind::kFloat: {
      const std::optional<float> number = number_of_text(content, wanted.missing);
      if (!number) return wrong_number(content, wanted.name);
      column.floats.push_back(*number);
      return std::nullopt;
    }
    case ValueKind::kInteger: {
      const std::optional<std::int64_t> number = integer_in(without_blanks(content));
      if (!number) return shown_text(content) + " in column '" + wanted.name + "', expected a whole number";
      column.integers.push_back(*number);
      return std::nullopt;
    }
    case ValueKind::kBytes:
      column.bytes.push_back(content);
      return std::nullopt;
  }
  return std::nullopt;
}

// Appends one sample to the table.
Status read_sample(const RecordBlock& block, std::size_t r, const RecordPlace& place,
                   const std::vector<WantedColumn>& wanted, std::vector<std::size_t>& starts, Table& table) {
  const auto bad = [&](const std::string& what) { return fail(ErrorCode::kData, name_of(block, r) + ": " + what); };
  for (std::size_t c = 0; c < wanted.size(); ++c) starts[c] = values_in(table.columns[c]);
  Tar tar(block.bytes.subspan(place.begin, place.bytes));
  bool has_key = false;
  Tar::Next next = tar.next();
  for (; next == Tar::Next::kMember; next = tar.next()) {
    const std::optional<MemberName> name = parts_of(tar.name());
    if (!name) continue;
    std::optional<std::string_view> content;
    for (std::size_t c = 0; c < wanted.size(); ++c) {
      TableColumn& column = table.columns[c];
      std::optional<std::string> problem;
      if (wanted[c].name == "__key__") {
        if (!has_key) problem = take_value(table.texts.keep(name->key), wanted[c], column);
      } else if (fits(name->extension, wanted[c].name)) {
        if (values_in(column) > starts[c])
          return bad("sample " + shown_text(name->key) + " has several members for column '" + wanted[c].name +
                     "', expected one: correct the file");
        if (!content) content = tar.content(table.texts);
        if (!content)
          return damaged(block, r, place.begin + tar.begin(), "a member isn't whole or has holes: " + tar.problem());
        problem = take_value(*content, wanted[c], column);
      }
      if (problem) return bad("sample " + shown_text(name->key) + " has " + *problem);
    }
    has_key = true;
  }
  // The sample ends where its place does, although the archive goes on.
  if (next == Tar::Next::kDamaged && !tar.asked_for_more()) return damaged(block, r, place.begin, tar.problem());
  for (std::size_t c = 0; c < wanted.size(); ++c)
    table.columns[c].lengths.push_back(static_cast<std::uint32_t>(values_in(table.columns[c]) - starts[c]));
  return {};
}

}  // namespace

Result<std::size_t> find_tar_samples(const RecordBlock& block, std::vector<RecordPlace>& records) {
  records.clear();
  Tar tar(block.bytes);
  std::string key;
  std::optional<std::size_t> begin;  // of the current sample
  for (;;) {
    const Tar::Next next = tar.next();
    if (next == Tar::Next::kMember) {
      const std::optional<MemberName> name = parts_of(tar.name());
      if (!name || (begin.has_value() && name->key == key)) continue;
      if (begin.has_value()) records.push_back({*begin, tar.begin() - *begin});
      begin = tar.begin();
      key = name->key;
      continue;
    }
    if (!block.is_last && tar.asked_for_more()) break;
    if (next == Tar::Next::kDamaged) return damaged(block, records.size(), begin.value_or(0), tar.problem());
    break;
  }
  const std::size_t at = begin.value_or(0);
  if (block.bytes.size() - at > kMaxSampleBytes)
    return fail(ErrorCode::kData, name_of(block, records.size()) + ": sample " + shown_text(key) + " has more than " +
                                      std::to_string(kMaxSampleBytes) + " bytes, expected a smaller one");
  if (!block.is_last) return at;
  if (!block.bytes.empty() && !ends_with_zeros(block.bytes))
    return damaged(block, records.size(), block.bytes.size(), "the file has no end mark");
  if (begin.has_value()) records.push_back({*begin, block.bytes.size() - *begin});
  return block.bytes.size();
}

Status decode_tar_samples(const RecordBlock& block, std::span<const RecordPlace> records,
                          const std::vector<WantedColumn>& wanted, Table& table) {
  start_table(wanted, table);
  table.records = records.size();
  std::vector<std::size_t> starts(wanted.size());
  for (std::size_t r = 0; r < records.size(); ++r)
    if (Status read = read_sample(block, r, records[r], wanted, starts, table); !read) return read;
  drop_equal_lengths(table);
  return {};
}

}  // namespace disttrain::input
