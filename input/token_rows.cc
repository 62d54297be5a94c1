// A data set keeps records as they are, and pads them when it makes a batch. The builtin transformer gets them without
// padding (ColumnSpec::ragged), so it needs no mask in its causal attention, and skips the outputs of padding before
// the product with the vocabulary, its largest. Exported programs have fixed shapes, and XLA compiles each shape anew,
// so they get `length` tokens. Trainers may choose. A batch reserves memory for records of `length` tokens, but the
// kernel gives it no pages that no batch touches.
#include "input/token_rows.h"

namespace disttrain::input {

DatasetColumn column_of(const TokenArray& array) {
  return {.name = array.name,
          .dtype = array.dtype,
          .elements = array.has_lengths ? 1 : array.length,
          .are_tokens = !array.has_lengths,
          .is_ragged = array.is_ragged,
          .pad = array.pad,
          .smallest = 0,
          .largest = array.largest};
}

std::vector<std::uint32_t> lengths_of(const TokenRows& rows, std::uint64_t begin, std::uint64_t end) {
  std::vector<std::uint32_t> lengths;
  lengths.reserve(end - begin);
  for (std::uint64_t i = begin; i < end; ++i) lengths.push_back(static_cast<std::uint32_t>(rows.row(i).size()));
  return lengths;
}

}  // namespace disttrain::input
