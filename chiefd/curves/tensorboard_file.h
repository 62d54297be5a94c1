// A TensorBoard event file: records of tensorflow's Event message (core/util/event.proto), framed as in TFRecord:
// length as u64, masked CRC-32C of the length, the record, masked CRC-32C of the record, all little-endian.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/os/descriptor.h"
#include "common/result.h"

namespace disttrain::chiefd {

struct Scalar {
  std::string tag;  // "train/loss": TensorBoard groups by the part before the slash
  double value = 0.0;
};

// Each returns one framed record. `wall_nanoseconds`: Unix time.
std::string version_record(std::int64_t wall_nanoseconds);  // the first of each file
std::string scalars_record(std::int64_t wall_nanoseconds, std::uint64_t step, const std::vector<Scalar>& scalars);
// The run starts over at this step: TensorBoard then hides earlier records of this step and of later ones.
std::string restart_record(std::int64_t wall_nanoseconds, std::uint64_t step);

// Appends without syncing; readers follow the file while it grows. After an error drop this object: the file may end in
// half a record, where readers stop and go on with the next file.
class TensorBoardFile {
 public:
  // Makes a new file with its version record. The folder is made if needed, but its parent must exist. All files of a
  // folder are one run. An error leaves no file.
  static Result<TensorBoardFile> create(const std::string& folder, std::int64_t wall_nanoseconds);

  Status append(const std::string& record);
  // Whether the file is still at its path: nobody has removed it or moved its folder.
  bool is_there() const;

 private:
  TensorBoardFile(std::string path, Descriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  Descriptor fd_;
};

}  // namespace disttrain::chiefd
