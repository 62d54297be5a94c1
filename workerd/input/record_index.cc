#include "workerd/input/record_index.h"

#include <fcntl.h>
#include <sys/mman.h>
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
#include "workerd/input/index_builder.h"

namespace disttrain::input {

namespace {

constexpr std::uint64_t kMagic = 0x3178646E69746444u;  // "Ddtindx1"
constexpr std::uint64_t kMaxFiles = 1 << 24;

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
    if (std::unique_ptr<RecordIndex> found = find()) return found;
    return build();
  }

 private:
  // The sizes and times of all files, and the key of the index from them.
  Status read_sizes() {
    Hash key;
    key.add(static_cast<std::uint64_t>(options_.format));
    for (const std::string& path : options_.paths) {
      struct stat about {};
      if (::stat(path.c_str(), &about) != 0)
        return fail(errno == EACCES ? ErrorCode::kNoPermission : ErrorCode::kNoInput,
                    path + ": can't be read: " + std::strerror(errno));
      const std::int64_t modified = about.st_mtim.tv_sec * 1'000'000'000LL + about.st_mtim.tv_nsec;
      files_.push_back({.path = path, .bytes = static_cast<std::uint64_t>(about.st_size), .modified_ns = modified});
      key.add(name_in_folder(options_, path));
      key.add(files_.back().bytes);
      key.add(static_cast<std::uint64_t>(modified));
    }
    key_ = key.value();
    return {};
  }

  // Null if there is no index or it is unusable. It is then built anew.
  std::unique_ptr<RecordIndex> find() const {
    const Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    return file ? map(file.get()) : nullptr;
  }

  std::unique_ptr<RecordIndex> map(int fd) const {
    struct stat about {};
    Header header;
    if (::fstat(fd, &about) != 0 || about.st_size < static_cast<off_t>(sizeof(Header))) return nullptr;
    std::unique_ptr<RecordIndex> index(new RecordIndex);
    index->map_bytes_ = static_cast<std::size_t>(about.st_size);
    void* const begin = ::mmap(nullptr, index->map_bytes_, PROT_READ, MAP_SHARED, fd, 0);
    if (begin == MAP_FAILED) return nullptr;
    index->map_ = begin;
    std::memcpy(&header, begin, sizeof(header));
    if (header.magic != kMagic || header.key != key_ || header.files != files_.size()) return nullptr;
    if (header.records == 0 || header.records > index->map_bytes_ / sizeof(IndexedPlace)) return nullptr;
    const std::size_t places_at = sizeof(Header) + header.files * sizeof(FileEntry);
    if (index->map_bytes_ != places_at + header.records * sizeof(IndexedPlace)) return nullptr;
    std::vector<FileEntry> entries(header.files);
    const auto* bytes = static_cast<const std::byte*>(begin);
    std::memcpy(entries.data(), bytes + sizeof(Header), header.files * sizeof(FileEntry));
    if (checksum_of(header, entries) != header.checksum) return nullptr;
    index->files_ = files_;
    std::uint64_t records = 0;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].first_record != records || entries[i].records == 0) return nullptr;
      records += entries[i].records;
      IndexedFile& file = index->files_[i];
      file.first_record = entries[i].first_record;
      file.records = entries[i].records;
      file.content_bytes = entries[i].content_bytes;
      file.is_packed = entries[i].is_packed != 0;
    }
    if (records != header.records) return nullptr;
    index->places_ = {reinterpret_cast<const IndexedPlace*>(bytes + places_at), header.records};
    index->hash_ = header.hash;
    return index;
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
    std::unique_ptr<RecordIndex> index = map(file.get());
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

RecordIndex::~RecordIndex() {
  if (map_ != nullptr) ::munmap(map_, map_bytes_);
}

std::size_t RecordIndex::file_of(std::uint64_t record) const {
  const auto after =
      std::upper_bound(files_.begin(), files_.end(), record,
                       [](std::uint64_t number, const IndexedFile& file) { return number < file.first_record; });
  return static_cast<std::size_t>(after - files_.begin()) - 1;
}

std::vector<std::uint64_t> RecordIndex::blocks(std::uint64_t block_bytes) const {
  std::vector<std::uint64_t> begins;
  for (const IndexedFile& file : files_) {
    begins.push_back(file.first_record);
    if (file.is_packed) continue;
    const auto of_file = places_.subspan(file.first_record, file.records);
    for (auto begin = of_file.begin();;) {
      const std::uint64_t least = begin->offset + block_bytes;
      begin = std::partition_point(begin + 1, of_file.end(),
                                   [least](const IndexedPlace& place) { return place.offset < least; });
      if (begin == of_file.end()) break;
      begins.push_back(file.first_record + static_cast<std::uint64_t>(begin - of_file.begin()));
    }
  }
  return begins;
}

}  // namespace disttrain::input
