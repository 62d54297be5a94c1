// Checks the labels of idx, npy and npz files that must be probabilities (probability.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"
#include "input/array.h"
#include "input/dataset.h"
#include "input/memory_dataset.h"

namespace disttrain::input {

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
