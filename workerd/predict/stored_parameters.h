// Reads the parameters of a checkpoint into the flat array of an engine.
#pragma once

#include <span>

#include "common/checkpoint/weights.h"
#include "common/layout.h"
#include "common/result.h"

namespace disttrain::workerd {

// Fills `values`, which has word_count(layout.model) words, with the values of all variables, in the order of the
// layout. Fails with kConfig if the checkpoint lacks a variable of the model or has it with another shape, and with the
// errors of Weights::read().
Status read_parameters(checkpoint::Weights& weights, const Layout& layout, std::span<float> values);

}  // namespace disttrain::workerd
