// A TensorBoard event file. Each record is an Event message of TensorFlow (core/util/event.proto), framed as in a
// TFRecord file: the length as u64, the masked CRC-32C of the length, the record, and the masked CRC-32C of the record.
// All numbers are little-endian.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/os/descriptor.h"
#include "common/result.h"

namespace disttrain::chiefd {

struct Scalar {
  std::string tag;  // such as "train/loss"; TensorBoard groups curves by the part before the slash
  double value = 0.0;
};

// Each of these functions returns one framed record. `wall_nanoseconds` is Unix time.
std::string version_record(std::int64_t wall_nanoseconds);  // the first of each file
std::string scalars_record(std::int64_t wall_nanoseconds, std::uint64_t step, const std::vector<Scalar>& scalars);
// This record says that the run starts over at `step`. TensorBoard then hides the earlier records of this step and of
// all later steps.
std::string restart_record(std::int64_t wall_nanoseconds, std::uint64_t step);

// Appends records to a file, without syncing it to the disk. TensorBoard may read the file while it grows. Drop this
// object after an error, because the file may end in half a record. A reader stops there and goes on with the next file
// of the folder.
class TensorBoardFile {
 public:
  // Creates a file that begins with a version record. Creates the folder if it is missing; the folder's parent must
  // exist. TensorBoard shows all files of a folder as one run. If this fails, it leaves no file.
  static Result<TensorBoardFile> create(const std::string& folder, std::int64_t wall_nanoseconds);

  Status append(const std::string& record);
  // Returns true if the file is still at its path. Returns false if somebody has removed the file or moved its folder.
  bool is_there() const;

 private:
  TensorBoardFile(std::string path, Descriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  Descriptor fd_;
};

}  // namespace disttrain::chiefd
