// Carries what [data.columns] took from the training set into checkpoints, and back. Of csv files without it, carries
// the labels and the header.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/checkpoint/kept_columns.h"
#include "common/config/job_config.h"
#include "common/result.h"
#include "input/columns.h"
#include "input/dataset.h"

namespace disttrain::input {

// For JobDescribed::columns. "" if it would be longer than kMaxKeptColumnsBytes.
std::string encode_fitted(const std::vector<ColumnSection>& columns, const FittedColumns& fitted);

// The same for a training set of csv files without [data.columns]: its labels and its header
// (common/checkpoint/kept_csv.h).
std::string encode_csv_names(const Dataset& training);

// What `columns` take from a checkpoint. A vocabulary, a mean or a deviation that job.toml gives comes first.
// Tokenizers are read from their files. Null if the checkpoint has other columns: then the training files are needed.
// Errors: those of load_tokenizers(); kConfig: a tokenizer isn't the one of the training.
Result<std::shared_ptr<const FittedColumns>> fitted_from(const std::vector<ColumnSection>& columns,
                                                         const std::vector<checkpoint::KeptColumn>& kept);

}  // namespace disttrain::input
