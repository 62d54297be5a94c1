// Decodes the lines of libsvm (svmlight) files: LABEL INDEX:VALUE INDEX:VALUE ..., with blanks between them. With a
// column "weight" a line may begin with LABEL:WEIGHT. Lines of comments alone aren't records. Indices grow, and values
// that a line doesn't name are 0. The text behind a # is a comment. Source: csie.ntu.edu.tw/~cjlin/ libsvm, "README",
// and svmlight.joachims.org.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/config/columns.h"
#include "common/result.h"
#include "input/record_block.h"
#include "input/table.h"

namespace disttrain::input {

struct LibsvmShape {
  std::uint32_t width = 1;      // values of a record, from 1 to kMaxLibsvmWidth
  bool one_based = true;        // whether the indices are 1 to `width`, and not 0 to `width` - 1
  bool has_weights = false;     // whether a label may have a weight, LABEL:WEIGHT
  bool may_lack_label = false;  // whether a line may begin with its features, as for a prediction
};

// As find_lines(), but without the lines that have only a comment.
Result<std::size_t> find_libsvm_lines(const RecordBlock& block, std::vector<RecordPlace>& records);

// Decodes lines of the block and replaces the content of `table`. `records` are from find_lines(block). The wanted
// columns are among "label" and "weight" (floats, integers, or bytes) and "features" (floats; `width` values of each
// record). A line without a weight has the weight "", which is NaN as a float.
//
// Errors, kConfig: another column is wanted. kData, with file and line: a text isn't a number (number_of_text()), a
// label has a comma or a control character, or a colon without has_weights, it can't be told from a feature, an index
// is out of range or doesn't grow, or the line has a "qid:" for ranking, which disttrain doesn't train. `table` is then
// unusable.
Status decode_libsvm(const RecordBlock& block, std::span<const RecordPlace> records,
                     const std::vector<WantedColumn>& wanted, const LibsvmShape& shape, Table& table);

}  // namespace disttrain::input
