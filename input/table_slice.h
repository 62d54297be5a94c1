// Cuts records out of a table.
#pragma once

#include <cstdint>

#include "input/table.h"

namespace disttrain::input {

// Keeps the records [begin, end) of the table only. Requires begin <= end <= table.records.
void keep_records(Table& table, std::uint64_t begin, std::uint64_t end);

}  // namespace disttrain::input
