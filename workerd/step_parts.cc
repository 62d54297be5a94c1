// With train.accumulate = N, a worker's batch of a step has N times train.batch_size records. Leases, blocks of steps
// and the ledger count such batches (TrainSection::step_records()), so nothing outside of the worker knows about the
// parts. If a part had a push of its own, the ps would have to know which pushes belong together.
#include "workerd/step_parts.h"

#include <algorithm>

#include "common/check.h"
#include "common/doubles.h"
#include "common/update/vector.h"

namespace disttrain::workerd {

StepParts::StepParts(const Layout& layout, std::uint64_t part_records)
    : part_records_(part_records),
      sum_(arena_, word_count(layout.model) * sizeof(float), Paging::kTouched),
      columns_(layout.model.columns.size()),
      row_ends_(layout.model.columns.size()) {
  DISTTRAIN_CHECK_GE(part_records, 1U);
  for (const ColumnSpec& column : layout.model.columns) dtypes_.push_back(column.dtype);
  for (std::size_t v = 0; v < layout.model.variables.size(); ++v) {
    const VariableSpec& variable = layout.model.variables[v];
    const std::uint64_t begin = layout.variable_begins[v];
    runs_.push_back({begin, begin + word_count(variable), variable.dtype, variable.kind == VariableKind::kState});
  }
  std::sort(runs_.begin(), runs_.end(), [](const Run& a, const Run& b) { return a.begin < b.begin; });
}

void StepParts::begin(const Batch& batch, std::span<const float> parameters) {
  DISTTRAIN_CHECK_EQ(batch.columns.size(), columns_.size());
  batch_ = batch;
  begin_ = end_ = index_ = 0;
  // An engine may change the state in `parameters` while it computes: a trainer's module does.
  for (const Run& run : runs_)
    if (run.is_state)
      std::ranges::copy(parameters.subspan(run.begin, run.end - run.begin), sum_.floats().subspan(run.begin).begin());
}

Batch StepParts::next(std::span<float> parameters, std::span<const float> gradients) {
  if (end_ > 0) {
    for (const Run& run : runs_) {
      if (!run.is_state) continue;
      std::ranges::copy(gradients.subspan(run.begin, run.end - run.begin), parameters.subspan(run.begin).begin());
    }
    ++index_;
  }
  begin_ = end_;
  end_ = std::min(begin_ + part_records_, batch_.examples);
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const ColumnValues& whole = batch_.columns[c];
    if (whole.row_ends.empty()) {
      const std::uint64_t record_bytes = batch_.examples == 0 ? 0 : whole.bytes.size() / batch_.examples;
      columns_[c].bytes = whole.bytes.subspan(begin_ * record_bytes, (end_ - begin_) * record_bytes);
      continue;
    }
    const std::uint64_t first = begin_ == 0 ? 0 : whole.row_ends[begin_ - 1];
    row_ends_[c].clear();
    for (std::uint64_t row = begin_; row < end_; ++row) row_ends_[c].push_back(whole.row_ends[row] - first);
    const std::uint64_t elements = row_ends_[c].empty() ? 0 : row_ends_[c].back();
    columns_[c].row_ends = row_ends_[c];
    columns_[c].bytes = whole.bytes.subspan(first * size_of(dtypes_[c]), elements * size_of(dtypes_[c]));
  }
  return Batch{end_ - begin_, columns_};
}

void StepParts::add(std::span<float> parameters, std::span<float> gradients, std::uint64_t begin, std::uint64_t end) {
  if (index_ == 0 && is_last()) return;
  for (const Run& run : runs_) {
    const std::uint64_t from = std::max(begin, run.begin);
    const std::uint64_t to = std::min(end, run.end);
    if (from >= to) continue;
    const std::span<float> part = gradients.subspan(from, to - from);
    const std::span<float> sum = sum_.floats().subspan(from, to - from);
    if (run.is_state) {
      if (is_last()) std::ranges::copy(sum, parameters.subspan(from, to - from).begin());
      continue;
    }
    with_type(run.dtype, [&]<typename T>(T) { add_run<T>(part, sum); });
  }
}

template <typename T>
void StepParts::add_run(std::span<float> part, std::span<float> sum) {
  const auto weight = static_cast<T>(static_cast<double>(end_ - begin_) / static_cast<double>(batch_.examples));
  if (index_ == 0) {
    const update::WeightedGradientOf<T> first{values_in<T>(part), weight};
    update::weighted_sum<T>(values_in<T>(sum), std::span(&first, 1));
  } else {
    update::add_weighted<T>(values_in<T>(sum), values_in<T>(part), weight);
  }
  if (is_last()) std::ranges::copy(values_in<T>(sum), values_in<T>(part).begin());
}

}  // namespace disttrain::workerd
