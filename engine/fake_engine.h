// An engine for tests. It computes only with small integers, which float32 represents exactly. So a test or the
// simulator can predict every sum to the bit. The engine uses neither libtorch nor random numbers.
//
// The value of an example is its first input plus its label; both should be integers. An element of the gradient is
//   fake_coefficient(variable, element) * (the sum of the values of the batch's examples).
// Because this is a sum and not a mean, the sum of all pushes doesn't depend on how the records are distributed over
// workers and steps. With reads_parameters the engine adds fake_residue(parameter) to each element; a test then sees
// whether a step used wrong or old parameters.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/engine.h"

namespace disttrain::workerd {

struct FakeModel {
  // The number of elements of each variable, at least 1. The variables are called "v0", "v1" and so on; there is at
  // least one.
  std::vector<std::uint64_t> variable_elements;
  std::uint64_t input_elements = 1;  // at least 1
  std::uint64_t classes = 10;        // if it is 0, an example's value is its first input
  bool reads_parameters = false;
};

ModelSpec describe_fake(const FakeModel& model);

// Returns 1, 2 or 3.
float fake_coefficient(std::uint32_t variable, std::uint64_t element);

// Drops the fraction of the parameter, and returns the rest modulo 3: 0, 1 or 2. Returns 0 if the parameter isn't
// finite.
float fake_residue(float parameter);

// The sum of the losses is the sum of the examples' values. With classes > 0 an evaluation has the metric "accuracy":
// an example is correct if its label equals |p| modulo classes, where p is the first parameter of v0. The engine
// computes inside start().
std::unique_ptr<Engine> make_fake_engine(const FakeModel& model);

}  // namespace disttrain::workerd
