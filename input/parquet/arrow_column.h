// Copies values of Arrow's arrays into columns of a table.
#pragma once

#include <arrow/array.h>
#include <arrow/status.h>
#include <arrow/type.h>

#include <optional>
#include <string>

#include "input/table.h"

namespace disttrain::input {

// Says why a column of this type can't become values of this kind; nothing if it can.
std::optional<std::string> unfit_type(const arrow::DataType& type, ValueKind kind);

// Checks that the array isn't damaged. Its strings may have any bytes, as binary values: whoever needs UTF-8 checks it,
// and names the record.
arrow::Status check_array(const arrow::Array& array);

// Appends all records of the array, whose type fits, to the column `wanted`, with their lengths. Bytes point into the
// array, or into `texts`, which gets the text of numbers in a column of bytes.
// Returns the number of the first record in the array that has a value that doesn't fit: a null in a list of integers,
// bytes or lists, a text that isn't a number, lists of another shape, or an integer beyond 64 bits with a sign.
std::optional<std::int64_t> append_array(const arrow::Array& array, const WantedColumn& wanted, TableColumn& column,
                                         Texts& texts);

}  // namespace disttrain::input
