// An engine that computes only with small integers, exact in float32, so that a test or the simulator can predict every
// sum to the bit. No libtorch, no randomness.
//
// The value of an example is its first input plus its label; use integers. A gradient element is
//   coefficient(variable, element) * sum of the batch's values  [+ residue(parameter) with reads_parameters]
// It is a sum and not a mean: however the records are dealt to workers and steps, their pushes add up to the same.
// reads_parameters adds a term that reveals a step that began from wrong or stale parameters.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "workerd/compute/engine.h"

namespace disttrain::workerd {

struct FakeModel {
  std::vector<std::uint64_t> variable_elements;  // variables "v0", "v1", ...; at least one, each at least 1 element
  std::uint64_t input_elements = 1;              // at least 1
  std::uint64_t classes = 10;                    // 0: an example's value is its first input alone
  bool reads_parameters = false;
};

ModelSpec describe_fake(const FakeModel& model);

// 1, 2 or 3.
float fake_coefficient(std::uint32_t variable, std::uint64_t element);

// The parameter modulo 3 (0, 1 or 2) if it is an integer, else 0.
float fake_residue(float parameter);

// loss: mean value of the examples. evaluate: loss_sum is the sum of the values; correct counts the examples whose
// label is |p| modulo classes, where p is the first parameter of v0.
std::unique_ptr<Engine> make_fake_engine(const FakeModel& model);

}  // namespace disttrain::workerd
