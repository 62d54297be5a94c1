// The labels of a builtin model with the loss sigmoid_cross_entropy are numbers from 0 to 1. With another label this
// loss has no minimum: the larger the output, the smaller the loss, so training makes the parameters ever larger.
#pragma once

#include <string>
#include <string_view>

#include "common/config/job_config.h"

namespace disttrain::input {

inline bool is_probability(double label) {
  return label >= 0.0 && label <= 1.0;
}

// The part of an error's text that follows a label.
inline constexpr const char* kExpectedProbability =
    ", expected 0 to 1, as model.loss = \"sigmoid_cross_entropy\" needs: ";

// Says what is wrong with the text `label` of a record, and what to do. The first one is for a column of
// [data.columns], the second one for the last column of a csv file without them.
std::string wrong_probability(const ColumnSection& column, std::string_view label);
std::string wrong_probability_in_csv(std::string_view label);

}  // namespace disttrain::input
