// A model as everyone except its engine sees it: named variables and the shape of the input.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/config/job_config.h"

namespace disttrain {

// Trainable variables have gradients and slots. State (batch-norm statistics) is pushed as a value and averaged.
enum class VariableKind : std::uint8_t { kTrainable, kState };

// A named float32 parameter. `shape` is row-major; its product, at least 1, is the number of elements. fan_in and
// fan_out, for glorot and he: the number of inputs and outputs of one unit.
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

// Variables in the order of a forward pass; gradients appear in reverse order.
struct ModelSpec {
  std::vector<VariableSpec> variables;
  std::uint64_t input_elements = 0;  // float32 values per record
  std::uint64_t classes = 0;         // labels are 0 .. classes - 1; 0: labels are values

  bool operator==(const ModelSpec&) const = default;
};

std::uint64_t element_count(const ModelSpec& model);

}  // namespace disttrain
