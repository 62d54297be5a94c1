// A data set in memory, as files give it: records with an input of fixed size and a label or a target.
//
// Immutable once loaded; any thread may read. Values stay in the type of the file (one byte per pixel) until a batch is
// made.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/config/job_config.h"
#include "common/result.h"

namespace disttrain::input {

// Where records come from: the part of [data] or [evaluate] that says so.
struct Source {
  DataFormat format = DataFormat::kIdx;
  std::string path;         // folder
  std::string files;        // glob in it
  std::string labels;       // glob in it, "" = found by the format's convention
  std::uint64_t begin = 0;  // records [begin, end); end = 0: all
  std::uint64_t end = 0;
  double scale = 1.0;
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::uint64_t records() const = 0;
  virtual std::uint64_t input_elements() const = 0;   // float32 values of one record
  virtual std::uint64_t target_elements() const = 0;  // float32 values of one target; 0: labels are class numbers
  virtual std::int64_t largest_label() const = 0;     // -1 with targets
  virtual std::uint64_t bytes_read() const = 0;

  // Writes the inputs of the named records (row by row, times scale) and their labels or targets.
  // inputs: indices.size() * input_elements(). labels: indices.size(), or empty with targets. Indices < records().
  virtual void gather(std::span<const std::uint64_t> indices, std::span<float> inputs, std::span<std::int64_t> labels,
                      std::span<float> targets) const = 0;
};

// Reads all files, several at a time. Errors name the file and what is wrong with it: kNoInput (no file matches,
// missing, unreadable), kData (truncated, corrupt, wrong magic, images and labels of different number), kConfig
// (records out of range).
Result<std::unique_ptr<Dataset>> load_dataset(const Source& source);

}  // namespace disttrain::input
