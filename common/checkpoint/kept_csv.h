// A checkpoint keeps the labels of csv files without [data.columns], if the labels are words, and their header. The
// numbers of the labels follow from all words of the training set, and only the header tells the columns apart. So a
// job mustn't go on from a checkpoint with other labels or another header.
//
// The file columns.cbor (kept_columns.h) holds the labels and the header as two columns with the empty name. No column
// of job.toml has this name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/checkpoint/kept_columns.h"

namespace disttrain::checkpoint {

struct KeptCsv {
  std::vector<std::string> labels;  // by their numbers; empty: the labels are numbers
  std::vector<std::string> header;  // the names of the columns, that of the label last; empty: the files have no header

  bool operator==(const KeptCsv&) const = default;
};

// For JobDescribed::columns. "" if it would be longer than kMaxKeptColumnsBytes.
std::string encode_csv(const KeptCsv& csv);

// Nothing if `columns` are those of [data.columns], or of another version.
std::optional<KeptCsv> csv_of(const std::vector<KeptColumn>& columns);

// Whether a job whose files have `found` may go on from a checkpoint with `kept`. The result is the first difference,
// such as "label 0 was 'Cat' and is 'cat' now", or nothing. Headers are compared only if both have one, because a
// header may be added or removed without a change of the columns. The last column is the label whatever its name is.
std::optional<std::string> difference(const KeptCsv& kept, const KeptCsv& found);

}  // namespace disttrain::checkpoint
