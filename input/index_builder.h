// Finds the places of all records of a data set.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/os/descriptor.h"
#include "common/result.h"
#include "input/record_index.h"

namespace disttrain::input {

// The places of the records of one file, in order. Many places are moved to a temporary file in the index's folder, so
// that the memory for them is bounded.
class PlacesOfFile {
 public:
  explicit PlacesOfFile(std::string folder) : folder_(std::move(folder)) {}

  Status add(const IndexedPlace& place);
  std::uint64_t records() const { return spooled_ + places_.size(); }

  // Calls use(std::span<const IndexedPlace>), which returns a Status, for all places in order.
  template <typename Use>
  Status for_each(const Use& use);

 private:
  static constexpr std::size_t kMostInMemory = 1 << 14;

  Status spool();
  Result<std::size_t> read_back(std::uint64_t first, std::vector<IndexedPlace>& to) const;

  std::string folder_;
  Descriptor file_;
  std::uint64_t spooled_ = 0;
  std::vector<IndexedPlace> places_;  // those that aren't in file_
};

template <typename Use>
Status PlacesOfFile::for_each(const Use& use) {
  std::vector<IndexedPlace> piece;
  for (std::uint64_t at = 0; at < spooled_;) {
    const Result<std::size_t> got = read_back(at, piece);
    if (!got) return tl::unexpected(got.error());
    at += *got;
    if (Status ok = use(std::span<const IndexedPlace>(piece)); !ok) return ok;
  }
  return places_.empty() ? Status() : use(std::span<const IndexedPlace>(places_));
}

struct BuiltFile {
  IndexedFile file;
  PlacesOfFile places;
};

// Opens a new file without a name in the folder. Returns an empty descriptor, and sets errno, if it can't.
Descriptor open_temporary_file(const std::string& folder);

// Reads the files, several at a time, and calls `use` for each of them in their order. `folder` is for temporary files.
// Sets all members of the files but first_record. Errors: also those of `use`.
Status find_all_records(const IndexOptions& options, const std::string& folder, const RecordFormat& format,
                        const std::function<Status(BuiltFile&&)>& use);

}  // namespace disttrain::input
