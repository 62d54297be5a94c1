// Describes a model by its named variables and the shape of its input. All code except the engine needs to know no more
// about the model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/config/job_config.h"

namespace disttrain {

// A trainable variable has a gradient and optimizer slots. A state variable (a batch-norm statistic) has neither:
// workers push its value, and the ps averages the values.
enum class VariableKind : std::uint8_t { kTrainable, kState };

// A named array of float32 parameters. The product of `shape` is the number of elements; it is at least 1, and elements
// are stored row by row. The initializers "glorot" and "he" need fan_in and fan_out, the numbers of inputs and outputs
// of a unit.
struct VariableSpec {
  std::string name;
  std::vector<std::uint64_t> shape;
  VariableKind kind = VariableKind::kTrainable;
  Initializer initializer;
  std::uint64_t fan_in = 1;
  std::uint64_t fan_out = 1;

  bool operator==(const VariableSpec&) const = default;
};

std::uint64_t element_count(const VariableSpec& variable);

// The variables are in the order of a forward pass. A backward pass produces the gradients in reverse order.
struct ModelSpec {
  std::vector<VariableSpec> variables;
  std::uint64_t input_elements = 0;  // number of float32 values in a record
  std::uint64_t classes = 0;         // labels are 0 .. classes - 1; 0: labels are values

  bool operator==(const ModelSpec&) const = default;
};

std::uint64_t element_count(const ModelSpec& model);

}  // namespace disttrain
