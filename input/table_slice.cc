#include "input/table_slice.h"

#include <cstddef>
#include <numeric>
#include <vector>

namespace disttrain::input {

namespace {

template <typename T>
void keep(std::vector<T>& values, std::size_t begin, std::size_t end) {
  if (values.empty()) return;
  values.resize(end);
  values.erase(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(begin));
}

}  // namespace

void keep_records(Table& table, std::uint64_t begin, std::uint64_t end) {
  if (begin == 0 && end == table.records) return;
  table.records = end - begin;
  for (TableColumn& column : table.columns) {
    std::size_t from = begin;
    std::size_t to = end;
    if (!column.lengths.empty()) {
      const auto first = column.lengths.begin();
      from = std::accumulate(first, first + static_cast<std::ptrdiff_t>(begin), std::size_t{0});
      to = std::accumulate(first + static_cast<std::ptrdiff_t>(begin), first + static_cast<std::ptrdiff_t>(end), from);
      keep(column.lengths, begin, end);
    }
    keep(column.floats, from, to);
    keep(column.integers, from, to);
    keep(column.bytes, from, to);
  }
}

}  // namespace disttrain::input
