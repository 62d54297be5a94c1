#include "input/npz.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "input/byte_source.h"
#include "input/decompressor.h"
#include "input/file_reader.h"
#include "input/npy.h"

namespace disttrain::input {

namespace {

using Archive = std::unique_ptr<archive, int (*)(archive*)>;

constexpr std::size_t kReadBytes = 256 * 1024;

Archive new_zip() {
  Archive zip(archive_read_new(), &archive_read_free);
  // This reader wants the directory at the end of the file. The other one, for streams, would take a truncated file.
  archive_read_support_format_zip_seekable(zip.get());
  return zip;
}

std::string reason_of(archive* zip) {
  const char* const text = archive_error_string(zip);
  return std::string("libarchive: ") + (text == nullptr ? "no reason given" : text);
}

tl::unexpected<Error> damaged(const std::string& path, archive* zip) {
  return fail(ErrorCode::kData, path + ": the npz file is damaged or truncated (" + reason_of(zip) +
                                    "), expected a zip file of npy files: copy it again");
}

// The content of the current member of a zip file.
class Member final : public ByteSource {
 public:
  // `file_bytes` is the size of the zip file. `content_bytes` counts the bytes that are read of all its members.
  Member(archive* zip, std::string path, std::uint64_t file_bytes, std::uint64_t& content_bytes,
         const std::function<bool()>& is_cancelled, std::uint64_t max_expansion)
      : zip_(zip),
        path_(std::move(path)),
        file_bytes_(file_bytes),
        content_bytes_(content_bytes),
        is_cancelled_(is_cancelled),
        max_expansion_(max_expansion) {}

  Result<std::size_t> read(std::span<std::byte> out) override {
    std::size_t done = 0;
    while (done < out.size()) {
      if (is_cancelled_ && is_cancelled_()) return fail(ErrorCode::kTemporary, path_ + ": reading it was cancelled");
      const auto piece = out.subspan(done, std::min(out.size() - done, kReadBytes));
      const la_ssize_t got = archive_read_data(zip_, piece.data(), piece.size());
      // A wrong checksum gives a warning, which is negative too.
      if (got < 0) return damaged(path_, zip_);
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
      content_bytes_ += static_cast<std::uint64_t>(got);
      if (content_bytes_ > most_content(file_bytes_, max_expansion_))
        return tl::unexpected(expansion_error(path_, file_bytes_, max_expansion_));
    }
    return done;
  }

  const std::string& path() const override { return path_; }
  std::uint64_t file_bytes() const override { return file_bytes_; }
  // numpy compresses with deflate, as gzip does.
  std::uint64_t most_content_bytes() const override { return file_bytes_ * largest_ratio(Compression::kGzip); }

 private:
  archive* const zip_;
  const std::string path_;
  const std::uint64_t file_bytes_;
  std::uint64_t& content_bytes_;
  const std::function<bool()>& is_cancelled_;
  const std::uint64_t max_expansion_;
};

Result<std::vector<NamedArray>> read_arrays(archive* zip, const std::string& path, std::uint64_t file_bytes,
                                            const std::vector<std::string>& names,
                                            const std::function<bool()>& is_cancelled, std::uint64_t max_expansion) {
  std::vector<NamedArray> arrays;
  std::uint64_t content_bytes = 0;
  archive_entry* entry = nullptr;
  for (std::size_t members = 0;; ++members) {
    const int answer = archive_read_next_header(zip, &entry);
    if (answer == ARCHIVE_EOF) break;
    if (answer != ARCHIVE_OK && answer != ARCHIVE_WARN) return damaged(path, zip);
    if (members == kMaxNpzMembers)
      return fail(ErrorCode::kData, path + ": has more than " + std::to_string(kMaxNpzMembers) +
                                        " members, expected an npz file of numpy");
    const char* const name_in_zip = archive_entry_pathname(entry);
    std::string_view name = name_in_zip == nullptr ? "" : name_in_zip;
    if (!name.ends_with(".npy")) continue;
    name.remove_suffix(4);
    if (!names.empty() && std::find(names.begin(), names.end(), name) == names.end()) continue;
    const bool is_there = std::any_of(arrays.begin(), arrays.end(), [name](const auto& a) { return a.name == name; });
    if (is_there) return fail(ErrorCode::kData, path + ": has two arrays \"" + std::string(name) + "\", expected one");
    Member member(zip, path + ", array \"" + std::string(name) + "\"", file_bytes, content_bytes, is_cancelled,
                  max_expansion);
    const Result<ArrayHeader> header = read_npy_header(member);
    if (!header) return tl::unexpected(header.error());
    Result<Array> array = read_array(member, *header);
    if (!array) return tl::unexpected(std::move(array.error()));
    arrays.push_back({std::string(name), std::move(*array)});
  }
  for (const std::string& name : names) {
    if (std::any_of(arrays.begin(), arrays.end(), [&name](const auto& a) { return a.name == name; })) continue;
    return fail(ErrorCode::kData,
                path + ": has no array \"" + name + "\": correct the name, or save it with numpy.savez");
  }
  return arrays;
}

}  // namespace

Result<std::vector<NamedArray>> read_npz(const std::string& path, const std::vector<std::string>& names,
                                         const std::function<bool()>& is_cancelled, std::uint64_t max_expansion) {
  // FileReader gives clear errors for a path that isn't a file.
  const Result<std::unique_ptr<FileReader>> file =
      FileReader::open(path, is_cancelled, max_expansion, /*may_be_zip=*/true);
  if (!file) return tl::unexpected(file.error());
  const Archive zip = new_zip();
  if (archive_read_open_filename(zip.get(), path.c_str(), kReadBytes) != ARCHIVE_OK) return damaged(path, zip.get());
  return read_arrays(zip.get(), path, (*file)->file_bytes(), names, is_cancelled, max_expansion);
}

Result<std::vector<NamedArray>> read_npz_from(std::span<const std::byte> content, const std::string& path,
                                              const std::vector<std::string>& names) {
  const Archive zip = new_zip();
  if (archive_read_open_memory(zip.get(), content.data(), content.size()) != ARCHIVE_OK)
    return damaged(path, zip.get());
  return read_arrays(zip.get(), path, content.size(), names, {}, kMaxExpansion);
}

}  // namespace disttrain::input
