// A TensorBoard event file: records of tensorflow's Event message (core/util/event.proto), framed as in TFRecord:
// length as u64, masked CRC-32C of that, the record, masked CRC-32C of it, all little-endian.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/os/descriptor.h"
#include "common/result.h"

namespace disttrain::chiefd {

struct Scalar {
  std::string tag;  // "train/loss": TensorBoard groups by what is before the slash
  double value = 0.0;
};

// Records, framed. `wall_nanoseconds`: Unix time.
std::string version_record(std::int64_t wall_nanoseconds);  // the first of each file
std::string scalars_record(std::int64_t wall_nanoseconds, std::uint64_t step, const std::vector<Scalar>& scalars);
// A run begins anew at this step: TensorBoard then hides what was recorded of it and of later ones before.
std::string restart_record(std::int64_t wall_nanoseconds, std::uint64_t step);

// Appends; nothing is synced, as readers follow the file while it grows. After an error it is to be dropped: the file
// may end in half a record, where readers stop, and go on with the next file.
class TensorBoardFile {
 public:
  // A new file with its version record, in a folder whose parent must be there. Several files of one folder are one
  // run. An error leaves no file.
  static Result<TensorBoardFile> create(const std::string& folder, std::int64_t wall_nanoseconds);

  Status append(const std::string& record);
  // Nobody has removed it or moved its folder away.
  bool is_there() const;

 private:
  TensorBoardFile(std::string path, Descriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  Descriptor fd_;
};

}  // namespace disttrain::chiefd
