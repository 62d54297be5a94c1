// One forward pass of a network: what the functions of networks.h read. Headers of this folder include libtorch's, so
// only its .cc files may include them, except for autograd_model.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "common/batch.h"
#include "common/config/job_config.h"
#include "common/model.h"
#include "engine/engine.h"

namespace disttrain::workerd::autograd {

// A record has a value that the model can't take. Becomes an error of kind kData.
class BadRecord : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// One of the model's variables. `next_value`: for a state variable a view of the gradient array, where a step leaves
// the new value. Before a step it has the present value.
struct Variable {
  at::Tensor value;
  at::Tensor next_value;
};

// How the records of a ragged column become a tensor: zeros stand behind records that are shorter than the longest one
// of the batch (or than two values), or than the largest length.
enum class PadTo : std::uint8_t { kLongest, kLargest };

// The batch's columns as tensors [examples, shape...]: views, or padded copies of ragged columns. Throws BadRecord if a
// column has another number of values than `columns` says, or a value that is out of range. If `may_lack_last`, the
// last column may be empty; it then becomes an undefined tensor.
std::vector<at::Tensor> tensors_of(const Batch& batch, const std::vector<ColumnSpec>& columns, PadTo pad_to,
                                   bool may_lack_last = false);

// For each row and column of `tensor`, which is a ragged column [examples, length], whether the value is the record's:
// bool [examples, length]. Undefined if all are.
at::Tensor own_values(const ColumnValues& values, const at::Tensor& tensor);

class Pass {
 public:
  // The spans must outlive the pass. Without a seed it isn't a step: there is no dropout, and batch norm uses the
  // statistics in the state variables.
  // `rows`: numbers of the rows of the outputs that are wanted, int64, ascending; undefined: all.
  Pass(std::span<const Variable> variables, std::span<const at::Tensor> columns, const StepSeed* seed,
       at::Tensor rows = {})
      : variables_(variables), columns_(columns), seed_(seed), rows_(std::move(rows)) {}

  // The next variable. A network uses the variables in the order of the spec.
  const at::Tensor& next() { return next_variable().value; }
  const Variable& next_variable();
  bool has_more() const { return next_ < variables_.size(); }

  const at::Tensor& column(std::size_t index) const { return columns_[index]; }
  bool is_step() const { return seed_ != nullptr; }
  // Those of the rows of `values` that are wanted as outputs.
  at::Tensor wanted_rows(const at::Tensor& values) const;

  // inputs * weight + bias, with the next two variables: weight [in, out] and bias [out].
  at::Tensor dense(const at::Tensor& inputs);
  // Batch norm over the second dimension, with the next four variables: weight, bias, running mean, running variance.
  at::Tensor batch_norm(const at::Tensor& inputs);

  bool drops(double rate) const { return is_step() && rate > 0.0; }
  at::Tensor dropout(const at::Tensor& values, double rate);

 private:
  const std::span<const Variable> variables_;
  const std::span<const at::Tensor> columns_;
  const StepSeed* const seed_;
  const at::Tensor rows_;
  std::size_t next_ = 0;
  std::uint64_t random_numbers_ = 0;  // how many of the step's random numbers are used
};

at::Tensor activate(Activation activation, const at::Tensor& values);

}  // namespace disttrain::workerd::autograd
