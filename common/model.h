// A model as everyone but its engine sees it: named variables, and the shape of what goes in.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/config/job_config.h"

namespace disttrain {

// Trainable variables get gradients and slots. State (batch-norm statistics) is pushed as a value and averaged.
enum class VariableKind : std::uint8_t { kTrainable, kState };

// A named float32 parameter. `shape` is row-major; the number of elements is its product, at least 1.
// fan_in and fan_out are what glorot and he need: number of inputs and outputs of one unit.
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

// Variables in the order in which a forward pass uses them; gradients appear in the reverse of it.
struct ModelSpec {
  std::vector<VariableSpec> variables;
  std::uint64_t input_elements = 0;  // float32 values per record
  std::uint64_t classes = 0;         // labels are 0 .. classes - 1; 0: labels are values

  bool operator==(const ModelSpec&) const = default;
};

std::uint64_t element_count(const ModelSpec& model);

}  // namespace disttrain
