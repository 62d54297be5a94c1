#include "workerd/input/token_rows.h"

namespace disttrain::input {

DatasetColumn column_of(const TokenArray& array) {
  return {.name = array.name,
          .dtype = DType::kInt32,
          .elements = array.has_lengths ? 1 : array.length,
          .are_tokens = !array.has_lengths,
          .is_ragged = array.is_ragged,
          .pad = array.pad,
          .smallest = 0,
          .largest = array.largest};
}

}  // namespace disttrain::input
