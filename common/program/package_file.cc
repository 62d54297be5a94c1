#include "common/program/package_file.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/printable.h"

namespace disttrain::program {
namespace {

constexpr std::uint64_t kEndBytes = 22;  // 4.3.16, end of central directory record
constexpr std::uint64_t kMaxCommentBytes = 65535;
constexpr std::uint64_t kLocator64Bytes = 20;  // 4.3.15
constexpr std::uint64_t kEnd64Bytes = 56;      // 4.3.14
constexpr std::uint64_t kEntryBytes = 46;      // 4.3.12, one member in the central directory
constexpr std::uint64_t kLocalBytes = 30;      // 4.3.7, local file header
constexpr std::uint32_t kEndMark = 0x06054b50;
constexpr std::uint32_t kLocator64Mark = 0x07064b50;
constexpr std::uint32_t kEnd64Mark = 0x06064b50;
constexpr std::uint32_t kEntryMark = 0x02014b50;
constexpr std::uint32_t kLocalMark = 0x04034b50;
constexpr std::uint32_t kMoved32 = 0xFFFFFFFF;  // the number is in the entry's field for zip64
constexpr std::uint16_t kZip64Field = 0x0001;   // 4.5.3
constexpr std::uint16_t kDeflated = 8;          // 4.4.5, the method of compression
constexpr std::size_t kChunkBytes = 1024 * 1024;

// Returns the little-endian number at a place of a text. The place must lie in the text.
template <typename Number>
Number number_at(const std::string& text, std::uint64_t at) {
  Number number = 0;
  std::memcpy(&number, text.data() + at, sizeof(number));
  return number;
}

// Computes the checksum of a content that comes in pieces.
class Checksum {
 public:
  void add(std::span<const Bytef> piece) {
    checksum_ = crc32(checksum_, piece.data(), static_cast<uInt>(piece.size()));
    bytes_ += piece.size();
  }
  bool is_of(const Member& member) const { return checksum_ == member.checksum && bytes_ == member.bytes; }

 private:
  uLong checksum_ = crc32(0, nullptr, 0);
  std::uint64_t bytes_ = 0;
};

// Decompresses the pieces of a content, and gives them to a checksum.
class Inflater {
 public:
  Inflater() { is_good_ = inflateInit2(&stream_, -MAX_WBITS) == Z_OK; }  // no header of zlib or gzip
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Gives the content of the piece to `take`. False if the content is damaged, or longer than `max_bytes`.
  template <typename Take>
  bool add(std::span<Bytef> piece, std::uint64_t max_bytes, const Take& take) {
    stream_.next_in = piece.data();
    stream_.avail_in = static_cast<uInt>(piece.size());
    // A full output may have left some content in zlib, also after the last byte of the piece.
    bool may_have_more = !piece.empty();
    while (is_good_ && may_have_more) {
      stream_.next_out = out_.data();
      stream_.avail_out = static_cast<uInt>(out_.size());
      const int result = inflate(&stream_, Z_NO_FLUSH);
      const std::size_t given = out_.size() - stream_.avail_out;
      if (stream_.total_out > max_bytes) return is_good_ = false;
      take(std::span<const Bytef>(out_).first(given));
      if (result == Z_BUF_ERROR && stream_.avail_in == 0) break;  // zlib had no more, and waits for the next piece
      is_good_ = result == Z_OK;
      if (result == Z_STREAM_END) return (has_ended_ = stream_.avail_in == 0);
      may_have_more = stream_.avail_in > 0 || stream_.avail_out == 0;
    }
    return is_good_;
  }
  bool has_ended() const { return has_ended_; }

 private:
  z_stream stream_ = {};
  bool is_good_ = false;
  bool has_ended_ = false;
  std::vector<Bytef> out_ = std::vector<Bytef>(kChunkBytes);
};

// A view of a part of a file. `name` is the part's name, for errors.
class FilePart final : public checkpoint::InputFile {
 public:
  FilePart(checkpoint::InputFile& file, std::string name, std::uint64_t begin, std::uint64_t bytes)
      : file_(file), name_(std::move(name)), begin_(begin), bytes_(bytes) {}
  std::uint64_t size() const override { return bytes_; }
  Status read_at(std::uint64_t offset, checkpoint::MutableBytes out) override {
    if (offset > bytes_ || out.size() > bytes_ - offset)
      return fail(ErrorCode::kData, name_ + " ends after " + std::to_string(bytes_) + " bytes; expected " +
                                        std::to_string(out.size()) + " bytes from byte " + std::to_string(offset) +
                                        " on: the file is damaged, or no package; export it again");
    return file_.read_at(begin_ + offset, out);
  }
  Result<bool> try_lock(checkpoint::LockKind kind) override { return file_.try_lock(kind); }
  Status make_private() override { return file_.make_private(); }

 private:
  checkpoint::InputFile& file_;
  const std::string name_;
  const std::uint64_t begin_;
  const std::uint64_t bytes_;
};

Result<std::string> read_text(checkpoint::InputFile& file, std::uint64_t begin, std::uint64_t bytes) {
  std::string text(bytes, '\0');
  if (Status read = file.read_at(begin, std::as_writable_bytes(std::span(text))); !read)
    return tl::unexpected(read.error());
  return text;
}

tl::unexpected<Error> damaged(const std::string& path, const std::string& what) {
  return fail(ErrorCode::kData,
              path + ": " + what + ": the file is truncated, damaged, or no package; export it again");
}

// Where the central directory is.
struct Directory {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
};

Result<Directory> find_directory(checkpoint::InputFile& file, const std::string& path) {
  const std::uint64_t size = file.size();
  const std::uint64_t tail_bytes = std::min(size, kEndBytes + kMaxCommentBytes);
  Result<std::string> tail = read_text(file, size - tail_bytes, tail_bytes);
  if (!tail) return tl::unexpected(tail.error());
  for (std::uint64_t at = tail_bytes >= kEndBytes ? tail_bytes - kEndBytes + 1 : 0; at-- > 0;) {
    if (number_at<std::uint32_t>(*tail, at) != kEndMark) continue;
    if (number_at<std::uint16_t>(*tail, at + 20) != tail_bytes - at - kEndBytes) continue;
    Directory directory{number_at<std::uint32_t>(*tail, at + 16), number_at<std::uint32_t>(*tail, at + 12)};
    const std::uint64_t end = size - tail_bytes + at;
    if (directory.begin != kMoved32 && directory.bytes != kMoved32) return directory;
    if (end < kLocator64Bytes) break;
    const Result<std::string> locator = read_text(file, end - kLocator64Bytes, kLocator64Bytes);
    if (!locator) return tl::unexpected(locator.error());
    if (number_at<std::uint32_t>(*locator, 0) != kLocator64Mark) break;
    const auto end64 = number_at<std::uint64_t>(*locator, 8);
    if (size < kEnd64Bytes || end64 > size - kEnd64Bytes) break;
    const Result<std::string> record = read_text(file, end64, kEnd64Bytes);
    if (!record) return tl::unexpected(record.error());
    if (number_at<std::uint32_t>(*record, 0) != kEnd64Mark) break;
    return Directory{number_at<std::uint64_t>(*record, 48), number_at<std::uint64_t>(*record, 40)};
  }
  return damaged(path, "no table of members at the end of the file");
}

// Replaces the numbers that don't fit into 32 bits by those of the field for zip64. `extra` is the entry's fields.
bool read_zip64(const std::string& extra, std::uint64_t& uncompressed, std::uint64_t& compressed,
                std::uint64_t& header) {
  std::uint64_t at = 0;
  while (extra.size() - at >= 4) {
    const auto kind = number_at<std::uint16_t>(extra, at);
    const std::uint64_t end = at + 4 + number_at<std::uint16_t>(extra, at + 2);
    if (end > extra.size()) return false;
    at += 4;
    if (kind == kZip64Field) {
      for (std::uint64_t* number : {&uncompressed, &compressed, &header}) {
        if (*number != kMoved32) continue;
        if (end - at < sizeof(std::uint64_t)) return false;
        *number = number_at<std::uint64_t>(extra, at);
        at += sizeof(std::uint64_t);
      }
      return true;
    }
    at = end;
  }
  return uncompressed != kMoved32 && compressed != kMoved32 && header != kMoved32;
}

}  // namespace

Result<PackageFile> PackageFile::open(checkpoint::Files& files, const std::string& path) {
  Result<std::unique_ptr<checkpoint::InputFile>> file = files.open(path);
  if (!file) return tl::unexpected(file.error());
  PackageFile package(path, std::move(*file));
  if (Status read = package.read_directory(); !read) return tl::unexpected(read.error());
  return package;
}

Status PackageFile::read_directory() {
  const Result<Directory> directory = find_directory(*file_, path_);
  if (!directory) return tl::unexpected(directory.error());
  if (directory->bytes > kMaxDirectoryBytes || directory->begin > file_->size() ||
      directory->bytes > file_->size() - directory->begin)
    return damaged(path_, "its table of members can't have " + std::to_string(directory->bytes) + " bytes");
  const Result<std::string> text = read_text(*file_, directory->begin, directory->bytes);
  if (!text) return tl::unexpected(text.error());
  std::uint64_t at = 0;
  while (text->size() - at >= kEntryBytes && number_at<std::uint32_t>(*text, at) == kEntryMark) {
    const std::uint64_t name_bytes = number_at<std::uint16_t>(*text, at + 28);
    const std::uint64_t extra_bytes = number_at<std::uint16_t>(*text, at + 30);
    const std::uint64_t end = at + kEntryBytes + name_bytes + extra_bytes + number_at<std::uint16_t>(*text, at + 32);
    if (end > text->size()) break;
    Member member;
    member.name = text->substr(at + kEntryBytes, name_bytes);
    member.checksum = number_at<std::uint32_t>(*text, at + 16);
    member.stored_bytes = number_at<std::uint32_t>(*text, at + 20);
    member.bytes = number_at<std::uint32_t>(*text, at + 24);
    member.begin = number_at<std::uint32_t>(*text, at + 42);  // of its local header, until locate()
    const bool is_encrypted = (number_at<std::uint16_t>(*text, at + 8) & 1U) != 0;
    if (!read_zip64(text->substr(at + kEntryBytes + name_bytes, extra_bytes), member.bytes, member.stored_bytes,
                    member.begin))
      break;
    const std::uint16_t method = number_at<std::uint16_t>(*text, at + 10);
    member.is_stored = method == 0 && !is_encrypted && member.stored_bytes == member.bytes;
    member.is_deflated = method == kDeflated && !is_encrypted;
    if (Status located = locate(member); !located) return located;
    members_.push_back(std::move(member));
    at = end;
  }
  if (at != text->size()) return damaged(path_, "its table of members breaks off at byte " + std::to_string(at));
  return check_apart();
}

Status PackageFile::check_apart() const {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (const Member& member : members_)
    if (member.stored_bytes > 0) ranges.emplace_back(member.begin, member.begin + member.stored_bytes);
  std::sort(ranges.begin(), ranges.end());
  for (std::size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].first < ranges[i - 1].second)
      return damaged(path_, "two members share the byte " + std::to_string(ranges[i].first));
  return {};
}

Status PackageFile::locate(Member& member) {
  const std::uint64_t size = file_->size();
  if (size < kLocalBytes || member.begin > size - kLocalBytes)
    return damaged(path_, "member " + printable(member.name) + " begins after the end of the file");
  const Result<std::string> header = read_text(*file_, member.begin, kLocalBytes);
  if (!header) return tl::unexpected(header.error());
  const std::uint64_t skipped =
      kLocalBytes + number_at<std::uint16_t>(*header, 26) + number_at<std::uint16_t>(*header, 28);
  if (number_at<std::uint32_t>(*header, 0) != kLocalMark || skipped > size - member.begin ||
      member.stored_bytes > size - member.begin - skipped)
    return damaged(path_, "member " + printable(member.name) + " isn't where the table of members says");
  member.begin += skipped;
  return {};
}

const Member* PackageFile::find(const std::string& name) const {
  const std::string suffix = "/" + name;
  const auto found = std::find_if(members_.begin(), members_.end(), [&](const Member& member) {
    return member.name == name || member.name.ends_with(suffix);
  });
  return found == members_.end() ? nullptr : &*found;
}

Result<std::string> PackageFile::read(const Member& member, std::uint64_t max_bytes) {
  if (member.bytes > max_bytes)
    return fail(ErrorCode::kData, path_ + ": member " + printable(member.name) + " has " +
                                      std::to_string(member.bytes) + " bytes; expected at most " +
                                      std::to_string(max_bytes));
  if (const auto file = open_member(member); !file) return tl::unexpected(file.error());
  if (Status verified = verify(member); !verified) return tl::unexpected(verified.error());
  return read_text(*file_, member.begin, member.bytes);
}

Result<std::unique_ptr<checkpoint::InputFile>> PackageFile::open_member(const Member& member) {
  if (!member.is_stored)
    return fail(ErrorCode::kData, path_ + ": member " + printable(member.name) +
                                      " is compressed; expected a package as disttrain.export writes it");
  return std::make_unique<FilePart>(*file_, path_ + ": member " + printable(member.name), member.begin, member.bytes);
}

Status PackageFile::verify(const Member& member) {
  return read_pieces(member, [](std::span<const Bytef>) {});
}

Result<std::string> PackageFile::unpack(const Member& member, std::uint64_t max_bytes) {
  if (member.bytes > max_bytes)
    return fail(ErrorCode::kData, path_ + ": member " + printable(member.name) + " has " +
                                      std::to_string(member.bytes) + " bytes; expected at most " +
                                      std::to_string(max_bytes));
  std::string content;
  const Status read = read_pieces(member, [&content](std::span<const Bytef> piece) {
    content.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  });
  if (!read) return tl::unexpected(read.error());
  return content;
}

Status PackageFile::read_pieces(const Member& member, const std::function<void(std::span<const Bytef>)>& take) {
  if (!member.is_deflated)
    if (const auto file = open_member(member); !file) return tl::unexpected(file.error());
  const tl::unexpected<Error> wrong = damaged(path_, "member " + printable(member.name) + " has a wrong checksum");
  FilePart file(*file_, path_ + ": member " + printable(member.name), member.begin, member.stored_bytes);
  std::optional<Inflater> inflater;
  if (member.is_deflated) inflater.emplace();
  Checksum checksum;
  const auto add = [&checksum, &take](std::span<const Bytef> piece) {
    checksum.add(piece);
    take(piece);
  };
  std::vector<Bytef> chunk;
  for (std::uint64_t at = 0; at < member.stored_bytes; at += chunk.size()) {
    chunk.resize(std::min<std::uint64_t>(kChunkBytes, member.stored_bytes - at));
    if (Status read = file.read_at(at, std::as_writable_bytes(std::span(chunk))); !read) return read;
    if (!inflater)
      add(chunk);
    else if (!inflater->add(chunk, member.bytes, add))
      return wrong;
  }
  if (!checksum.is_of(member) || (inflater && !inflater->has_ended())) return wrong;
  return {};
}

}  // namespace disttrain::program
