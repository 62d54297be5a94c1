// Leases and the ledger name positions, so a worker must find any record by its number. If each worker read the files
// from their begin, as tf.data does, a lease couldn't be lent again after a loss, and records would be skipped or
// repeated. 11 million records of 12 GB were indexed in 8 s.
#include "input/record_index.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>
#include <utility>

#include "common/os/descriptor.h"
#include "common/os/regular_file.h"
#include "input/index_builder.h"

namespace disttrain::input {

namespace {

constexpr std::uint64_t kMagic = 0x3278646E69746444u;  // "Ddtindx2"; in version 1 samples weren't part of the key
constexpr std::size_t kSampleBytes = 4096;
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;  // of a file that is hashed as a whole
constexpr std::uint64_t kPlacesPerRead = 64 * 1024;

struct Header {
  std::uint64_t magic = kMagic;
  std::uint64_t key = 0;
  std::uint64_t hash = 0;
  std::uint64_t files = 0;
  std::uint64_t records = 0;
  std::uint64_t checksum = 0;  // of the header with 0 here, and of the table of files
};

// In the order of IndexOptions::paths.
struct FileEntry {
  std::uint64_t first_record = 0;
  std::uint64_t records = 0;
  std::uint64_t content_bytes = 0;
  std::uint64_t is_packed = 0;
};

class Hash {
 public:
  Hash() : state_(XXH3_createState()) { XXH3_64bits_reset(state_); }
  ~Hash() { XXH3_freeState(state_); }
  Hash(const Hash&) = delete;
  Hash& operator=(const Hash&) = delete;

  void add(const void* bytes, std::size_t size) { XXH3_64bits_update(state_, bytes, size); }
  void add(std::uint64_t number) { add(&number, sizeof(number)); }
  void add(const std::string& text) {
    add(std::uint64_t{text.size()});
    add(text.data(), text.size());
  }
  std::uint64_t value() const { return XXH3_64bits_digest(state_); }

 private:
  XXH3_state_t* state_;
};

std::string name_in_folder(const IndexOptions& options, const std::string& path) {
  return path.starts_with(options.data_folder) ? path.substr(options.data_folder.size()) : path;
}

std::uint64_t checksum_of(Header header, const std::vector<FileEntry>& files) {
  header.checksum = 0;
  Hash hash;
  hash.add(&header, sizeof(header));
  hash.add(files.data(), files.size() * sizeof(FileEntry));
  return hash.value();
}

// Returns false if the file ends before `out` is full, or can't be read.
bool read_whole(int fd, std::uint64_t offset, std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t got = ::pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    offset += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

Status write_all(int fd, const void* bytes, std::size_t size, const std::string& path) {
  const char* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t wrote = ::write(fd, at, size);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0)
      return fail(ErrorCode::kNoInput, path + ": can't write the index of the data: " + std::strerror(errno) +
                                           "; free some space, or set data.index to another folder");
    at += wrote;
    size -= static_cast<std::size_t>(wrote);
  }
  return {};
}

}  // namespace

// The file of an index: finds it, or builds and writes it.
class IndexFile {
 public:
  IndexFile(const IndexOptions& options, const RecordFormat& format) : options_(options), format_(format) {}

  Result<std::unique_ptr<RecordIndex>> open() {
    if (Status ok = read_sizes(); !ok) return tl::unexpected(std::move(ok.error()));
    folder_ = options_.index_folder.empty() ? options_.data_folder : options_.index_folder;
    char name[64];
    std::snprintf(name, sizeof(name), "/.disttrain-%016llx.index", static_cast<unsigned long long>(key_));
    path_ = folder_ + name;
    Result<std::unique_ptr<RecordIndex>> found = find();
    if (!found || *found) return found;
    return build();
  }

 private:
  // The sizes and times of all files, and the key of the index from them and from the files' contents.
  Status read_sizes() {
    Hash key;
    key.add(static_cast<std::uint64_t>(options_.format));
    if (options_.has_header) key.add(1);
    for (const std::string& path : options_.paths) {
      struct stat about {};
      if (::stat(path.c_str(), &about) != 0)
        return fail(errno == EACCES ? ErrorCode::kNoPermission : ErrorCode::kNoInput,
                    path + ": can't be read: " + std::strerror(errno));
      const std::int64_t modified = modified_ns(about);
      files_.push_back({.path = path, .bytes = static_cast<std::uint64_t>(about.st_size), .modified_ns = modified});
      key.add(name_in_folder(options_, path));
      key.add(files_.back().bytes);
      key.add(static_cast<std::uint64_t>(modified));
    }
    const std::size_t sampled = std::min(files_.size(), kMostSampled);
    // Where each file is a record, the index has only the sizes of the files.
    std::uint64_t room = format_.is_file_record() ? 0 : kMostHashedBytes;
    for (std::size_t i = 0; i < sampled; ++i) {
      const IndexedFile& file = files_[i * files_.size() / sampled];
      const bool is_whole = file.bytes <= room;
      if (is_whole) room -= file.bytes;
      if (Status ok = add_content(file, is_whole, key); !ok) return ok;
    }
    key_ = key.value();
    return {};
  }

  // Adds the whole content of a file, or its sample. A copy or a restored backup may have the size and the time of the
  // file before it.
  Status add_content(const IndexedFile& about, bool is_whole, Hash& key) const {
    const RegularFile opened = open_regular_file(about.path);
    if (!opened.file)
      return fail(opened.error == EACCES ? ErrorCode::kNoPermission : ErrorCode::kNoInput,
                  about.path + ": can't be read: " + opened.problem + "; expected a data file");
    std::vector<std::byte> bytes(std::min<std::uint64_t>(about.bytes, is_whole ? kPieceBytes : kSampleBytes));
    const auto add = [&](std::uint64_t at) -> Status {
      if (options_.is_cancelled && options_.is_cancelled())
        return fail(ErrorCode::kTemporary, about.path + ": reading it was cancelled");
      const auto piece = std::span(bytes).first(std::min<std::uint64_t>(bytes.size(), about.bytes - at));
      if (!read_whole(opened.file.get(), at, piece))
        return fail(ErrorCode::kNoInput, about.path + ": can't be read at byte " + std::to_string(at) +
                                             ": it is damaged, or was changed: fetch or copy it again");
      key.add(piece.data(), piece.size());
      return {};
    };
    const std::uint64_t last = about.bytes - bytes.size();
    std::vector<std::uint64_t> places = {0, last / 2, last};
    if (is_whole) {
      places.clear();
      for (std::uint64_t at = 0; at < about.bytes; at += bytes.size()) places.push_back(at);
    }
    for (const std::uint64_t at : places)
      if (Status ok = add(at); !ok) return ok;
    return {};
  }

  // Null if there is no index or it is unusable. It is then built anew.
  Result<std::unique_ptr<RecordIndex>> find() const {
    RegularFile opened = open_regular_file(path_);
    if (!opened.file) return std::unique_ptr<RecordIndex>();
    return check(std::move(opened.file), path_);
  }

  // Takes the file of an index if it is undamaged and fits the data files; else returns null. Reads all of it. Errors:
  // kTemporary.
  Result<std::unique_ptr<RecordIndex>> check(Descriptor file, const std::string& path) const {
    struct stat about {};
    Header header;
    if (::fstat(file.get(), &about) != 0 || !read_whole(file.get(), 0, std::as_writable_bytes(std::span(&header, 1))))
      return nullptr;
    std::unique_ptr<RecordIndex> index(new RecordIndex);
    index->file_bytes_ = static_cast<std::uint64_t>(about.st_size);
    index->modified_ns_ = modified_ns(about);
    if (header.magic != kMagic || header.key != key_ || header.files != files_.size()) return nullptr;
    if (header.records == 0 || header.records > index->file_bytes_ / sizeof(IndexedPlace)) return nullptr;
    index->places_at_ = sizeof(Header) + header.files * sizeof(FileEntry);
    if (index->file_bytes_ != index->places_at_ + header.records * sizeof(IndexedPlace)) return nullptr;
    std::vector<FileEntry> entries(header.files);
    if (!read_whole(file.get(), sizeof(Header), std::as_writable_bytes(std::span(entries)))) return nullptr;
    if (checksum_of(header, entries) != header.checksum) return nullptr;
    index->files_ = files_;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].first_record != index->records_ || entries[i].records == 0) return nullptr;
      index->records_ += entries[i].records;
      IndexedFile& one = index->files_[i];
      one.first_record = entries[i].first_record;
      one.records = entries[i].records;
      one.content_bytes = entries[i].content_bytes;
      one.is_packed = entries[i].is_packed != 0;
    }
    if (index->records_ != header.records) return nullptr;
    index->path_ = path;
    index->file_ = std::move(file);
    index->hash_ = header.hash;
    const Result<std::uint64_t> hash = read_places(*index);
    if (!hash) return tl::unexpected(hash.error());
    return *hash == header.hash ? std::move(index) : nullptr;
  }

  // Reads the places of all records. Returns their hash, and finds the blocks.
  Result<std::uint64_t> read_places(RecordIndex& index) const {
    Hash hash;
    std::vector<IndexedPlace> places;
    for (const IndexedFile& file : index.files_) {
      hash.add(name_in_folder(options_, file.path));
      std::uint64_t begin = 0;  // of the block, in the file's content
      for (std::uint64_t done = 0; done < file.records; done += places.size()) {
        if (options_.is_cancelled && options_.is_cancelled())
          return fail(ErrorCode::kTemporary, index.path_ + ": reading it was cancelled");
        places.resize(std::min(kPlacesPerRead, file.records - done));
        const std::uint64_t at = index.places_at_ + (file.first_record + done) * sizeof(IndexedPlace);
        if (!read_whole(index.file_.get(), at, std::as_writable_bytes(std::span(places)))) return 0;
        hash.add(places.data(), places.size() * sizeof(IndexedPlace));
        for (std::size_t i = 0; i < places.size(); ++i) {
          const bool is_first = done + i == 0;
          const bool is_full =
              options_.block_bytes > 0 && !file.is_packed && places[i].offset >= begin + options_.block_bytes;
          if (!is_first && !is_full) continue;
          index.blocks_.push_back(file.first_record + done + i);
          begin = places[i].offset;
        }
      }
    }
    return hash.value();
  }

  Result<std::unique_ptr<RecordIndex>> build() {
    std::string notice;
    std::string temporary = path_ + "." + std::to_string(std::random_device()()) + ".tmp";
    Descriptor file(::open(temporary.c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0644));
    if (!file) {
      const std::string problem =
          "the index of the data can't be kept in " + folder_ + " (" + std::strerror(errno) + ")";
      if (!options_.index_folder.empty())
        return fail(errno == EACCES ? ErrorCode::kNoPermission : ErrorCode::kNoInput,
                    problem + ": set data.index to a folder that workers may write");
      notice = problem + ", so each job builds it anew: set data.index to a folder that workers may write";
      temporary.clear();
      std::error_code no_folder;  // TMPDIR may name a folder that doesn't exist
      folder_ = std::filesystem::temp_directory_path(no_folder).string();
      if (!no_folder) file = open_temporary_file(folder_);
      if (!file)
        return fail(ErrorCode::kNoInput,
                    notice + "; " + (no_folder ? "the folder for temporary files" : folder_) + " can't hold it either");
    }
    Status written = write(file.get());
    if (written && !temporary.empty() && std::rename(temporary.c_str(), path_.c_str()) != 0)
      written = fail(ErrorCode::kNoInput, path_ + ": can't rename the index of the data: " + std::strerror(errno));
    if (!written) {
      if (!temporary.empty()) ::unlink(temporary.c_str());
      return tl::unexpected(std::move(written.error()));
    }
    Result<std::unique_ptr<RecordIndex>> checked = check(std::move(file), path_);
    if (!checked) return checked;
    std::unique_ptr<RecordIndex> index = std::move(*checked);
    if (!index)
      return fail(ErrorCode::kData,
                  options_.data_folder +
                      ": the data files were changed while their index was built: start the job again "
                      "when they are complete");
    index->was_built_ = true;
    index->notice_ = std::move(notice);
    return index;
  }

  Status write(int fd) {
    Header header{.key = key_, .files = files_.size()};
    const std::size_t places_at = sizeof(Header) + header.files * sizeof(FileEntry);
    if (::lseek(fd, static_cast<off_t>(places_at), SEEK_SET) < 0) return write_all(-1, &header, 1, path_);
    std::vector<FileEntry> entries;
    Hash hash;
    const auto write_places = [&](BuiltFile&& one) {
      // The files must be those whose sizes and times are in the key.
      const IndexedFile& known = files_[entries.size()];
      if (one.file.bytes != known.bytes || one.file.modified_ns != known.modified_ns) header.key = 0;
      entries.push_back({header.records, one.file.records, one.file.content_bytes, one.file.is_packed ? 1u : 0u});
      header.records += one.file.records;
      hash.add(name_in_folder(options_, one.file.path));
      return one.places.for_each([&](std::span<const IndexedPlace> places) {
        hash.add(places.data(), places.size_bytes());
        return write_all(fd, places.data(), places.size_bytes(), path_);
      });
    };
    if (Status ok = find_all_records(options_, folder_, format_, write_places); !ok) return ok;
    header.hash = hash.value();
    header.checksum = checksum_of(header, entries);
    if (::lseek(fd, 0, SEEK_SET) < 0) return write_all(-1, &header, 1, path_);
    if (Status ok = write_all(fd, &header, sizeof(header), path_); !ok) return ok;
    if (Status ok = write_all(fd, entries.data(), entries.size() * sizeof(FileEntry), path_); !ok) return ok;
    if (::fsync(fd) != 0)
      return fail(ErrorCode::kNoInput, path_ + ": can't write the index of the data: " + std::strerror(errno));
    return {};
  }

  const IndexOptions& options_;
  const RecordFormat& format_;
  std::vector<IndexedFile> files_;
  std::uint64_t key_ = 0;
  std::string folder_;
  std::string path_;
};

Result<std::unique_ptr<RecordIndex>> RecordIndex::open(const IndexOptions& options, const RecordFormat& format) {
  return IndexFile(options, format).open();
}

std::size_t RecordIndex::file_of(std::uint64_t record) const {
  const auto after =
      std::upper_bound(files_.begin(), files_.end(), record,
                       [](std::uint64_t number, const IndexedFile& file) { return number < file.first_record; });
  return static_cast<std::size_t>(after - files_.begin()) - 1;
}

Status RecordIndex::read(std::uint64_t first, std::uint64_t count, std::vector<IndexedPlace>& places) const {
  places.resize(count);
  struct stat about {};
  const bool is_same = ::fstat(file_.get(), &about) == 0 && static_cast<std::uint64_t>(about.st_size) == file_bytes_ &&
                       modified_ns(about) == modified_ns_;
  if (is_same &&
      read_whole(file_.get(), places_at_ + first * sizeof(IndexedPlace), std::as_writable_bytes(std::span(places))))
    return {};
  return fail(
      ErrorCode::kData,
      path_ + ": this index of the data was changed while a job used it: start the job again, which builds it anew");
}

}  // namespace disttrain::input
