#include "engine/trainer/shared_columns.h"

#include <cstring>

namespace disttrain::workerd {

namespace {

constexpr std::uint64_t kAlignment = 64;  // of a column: of every dtype, and a cache line

std::uint64_t round_up(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

std::vector<SharedColumn> SharedColumns::share(std::span<const ColumnValues> columns) {
  std::uint64_t needed = 0;
  for (const ColumnValues& column : columns)
    needed += round_up(column.bytes.size()) + round_up(column.row_ends.size_bytes());
  if (!copies_ || copies_->size() < needed)
    copies_ = std::make_unique<Memory>(arena_, std::max(needed + needed / 2, kAlignment), Paging::kTouched);
  std::uint64_t used = 0;
  const auto place_of = [this, &used](std::span<const std::byte> bytes) {
    if (const auto place = arena_.find(bytes); place && !bytes.empty()) return *place;
    const std::span<std::byte> copy = copies_->bytes().subspan(used, bytes.size());
    if (!bytes.empty()) std::memcpy(copy.data(), bytes.data(), bytes.size());
    used += round_up(bytes.size());
    return *arena_.find(copy);
  };
  std::vector<SharedColumn> shared;
  for (const ColumnValues& column : columns) {
    SharedColumn to;
    to.bytes = column.bytes.size();
    to.values = place_of(column.bytes);
    to.row_end_bytes = column.row_ends.size_bytes();
    if (to.row_end_bytes > 0) to.row_ends = place_of(std::as_bytes(column.row_ends));
    shared.push_back(to);
  }
  return shared;
}

}  // namespace disttrain::workerd
