// One forward pass of a network: what the functions of networks.h read. Headers of this folder include libtorch's, so
// only its .cc files may include them, except for autograd_model.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>
#include <stdexcept>
#include <vector>

#include "common/batch.h"
#include "common/config/job_config.h"
#include "common/model.h"
#include "workerd/compute/engine.h"

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

// Views of the batch's columns as tensors [examples, shape...]. Throws BadRecord if a column has another number of
// values than `columns` says, or a value that is out of range. If `may_lack_last`, the last column may be empty; it
// then becomes an undefined tensor.
std::vector<at::Tensor> tensors_of(const Batch& batch, const std::vector<ColumnSpec>& columns, bool may_lack_last);

class Pass {
 public:
  // The spans must outlive the pass. Without a seed it isn't a step: there is no dropout, and batch norm uses the
  // statistics in the state variables.
  Pass(std::span<const Variable> variables, std::span<const at::Tensor> columns, const StepSeed* seed)
      : variables_(variables), columns_(columns), seed_(seed) {}

  // The next variable. A network uses the variables in the order of the spec.
  const at::Tensor& next() { return next_variable().value; }
  const Variable& next_variable();
  bool has_more() const { return next_ < variables_.size(); }

  const at::Tensor& column(std::size_t index) const { return columns_[index]; }
  bool is_step() const { return seed_ != nullptr; }

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
  std::size_t next_ = 0;
  std::uint64_t random_numbers_ = 0;  // how many of the step's random numbers are used
};

at::Tensor activate(Activation activation, const at::Tensor& values);

}  // namespace disttrain::workerd::autograd
