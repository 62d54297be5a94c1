// A data set in memory as its files hold it: records with an input of fixed size and a label or a target.
//
// Immutable once loaded; any thread may read. Values stay in the type of the file (one byte per pixel) until a batch is
// made.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/config/job_config.h"
#include "common/result.h"

namespace disttrain::input {

// Asked now and then while files are read, from several threads; true ends the reading with kTemporary.
using IsCancelled = std::function<bool()>;

// Where records come from, as [data] or [evaluate] says.
struct Source {
  DataFormat format = DataFormat::kIdx;
  std::string path;         // folder
  std::string files;        // glob in it
  std::string labels;       // glob in it, "" = found by the format's convention
  std::uint64_t begin = 0;  // records [begin, end); end = 0: all
  std::uint64_t end = 0;
  double scale = 1.0;
  // csv with text labels: label i is called label_names[i]. Empty: the sorted labels that were found. For a test set:
  // the training set's labels, even those that the test set lacks.
  std::vector<std::string> label_names;
  std::string section = "data";        // of job.toml, for messages: "data" | "evaluate"
  std::string path_key = "data.path";  // the key that names the folder: [evaluate] may inherit it from [data]
  IsCancelled is_cancelled;            // empty: never cancelled
};

// The source in [data], and that in [evaluate]: all records of its files, with format and scale of [data].
Source training_source(const DataSection& data);
Source evaluation_source(const DataSection& data, const EvaluateSection& evaluate);

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::uint64_t records() const = 0;
  virtual std::uint64_t input_elements() const = 0;   // float32 values of one record
  virtual std::uint64_t target_elements() const = 0;  // float32 values of one target; 0: labels are class numbers
  virtual std::int64_t largest_label() const = 0;     // -1 with targets
  virtual std::uint64_t bytes_read() const = 0;       // from disk, compressed as they are there
  virtual const std::vector<std::string>& label_names() const = 0;  // empty unless labels are text

  // Writes the inputs of the named records (row by row, times scale), and their labels or targets.
  // inputs: indices.size() * input_elements(). Indices < records().
  // labels: indices.size(), or empty if not wanted. Only without target_elements().
  // targets: indices.size() * w, or empty. With target_elements(), w is that number. Otherwise they are made from the
  // labels: w = 1 gives the label as a value; w > 1 gives 1 at the label's place and 0 elsewhere, for labels < w.
  virtual void gather(std::span<const std::uint64_t> indices, std::span<float> inputs, std::span<std::int64_t> labels,
                      std::span<float> targets) const = 0;
};

// Reads all files, in sorted order of their names, several at a time. Errors name the file and its fault: kNoInput (no
// file matches, missing, unreadable), kNoPermission, kData (truncated, corrupt, wrong magic, different numbers of
// images and labels), kConfig (records out of range, keys that the format needs, no memory).
//
// Whole numbers from 0 are labels; anything else (fractions, negative numbers, several values per record) are targets.
// Text labels (csv) are numbered in sorted order.
Result<std::unique_ptr<Dataset>> load_dataset(const Source& source);

}  // namespace disttrain::input
