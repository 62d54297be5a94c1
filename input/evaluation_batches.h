// Divides a data set into batches for an evaluation. The batches contain each record once, in the order of the data
// set.
#pragma once

#include <cstdint>
#include <vector>

#include "input/batch_buffer.h"
#include "input/dataset.h"

namespace disttrain::input {

// The data set must outlive this object. All calls come from one thread.
class EvaluationBatches {
 public:
  // `columns` are the model's; the data set fits them (fits.h).
  EvaluationBatches(const Dataset& dataset, std::uint64_t batch_size, const std::vector<ColumnSpec>& columns)
      : dataset_(dataset), batch_size_(batch_size), buffer_(dataset, batch_size, columns) {}

  // Returns the next batch, or null after the last batch. The last batch may be smaller than the others. The result is
  // valid until the next call. Errors: those of Dataset::gather().
  Result<const BatchBuffer*> next() {
    if (next_record_ == dataset_.records()) return nullptr;
    indices_.clear();
    while (indices_.size() < batch_size_ && next_record_ < dataset_.records()) indices_.push_back(next_record_++);
    if (Status filled = buffer_.fill(indices_); !filled) return tl::unexpected(std::move(filled.error()));
    return &buffer_;
  }

  // Starts again at the first record.
  void restart() { next_record_ = 0; }

 private:
  const Dataset& dataset_;
  const std::uint64_t batch_size_;
  BatchBuffer buffer_;
  std::vector<std::uint64_t> indices_;
  std::uint64_t next_record_ = 0;
};

}  // namespace disttrain::input
