// The labels of a builtin model with the loss sigmoid_cross_entropy are numbers from 0 to 1. With another label this
// loss has no minimum: the larger the output, the smaller the loss, so training makes the parameters ever larger.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/config/job_config.h"
#include "common/result.h"
#include "input/array.h"
#include "input/dataset.h"
#include "input/memory_dataset.h"

namespace disttrain::input {

inline bool is_probability(double label) {
  return label >= 0.0 && label <= 1.0;
}

// Says what is wrong with the text `label` of a record, and what to do. The first one is for a column of
// [data.columns], the second one for the last column of a csv file without them.
std::string wrong_probability(const ColumnSection& column, std::string_view label);
std::string wrong_probability_in_csv(std::string_view label);

// A file of idx, npy or npz, and its number of labels.
struct LabelFile {
  std::string path;
  std::uint64_t records = 0;
};
std::vector<LabelFile> label_files(const std::vector<Array>& labels);

// Checks the labels of the source's records, which were joined from `files`, one file after the other. Labels that
// aren't as many in each record as the model has outputs are left to fits(): they become a 1 at the output of their
// class, or they don't fit. Errors, kData: a label isn't from 0 to 1.
Status check_probabilities(const Source& source, const std::vector<LabelFile>& files, const Contents& contents);

}  // namespace disttrain::input
