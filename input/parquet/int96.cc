#include "input/parquet/int96.h"

#include <parquet/exception.h>
#include <parquet/types.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

namespace disttrain::input {

namespace {

std::int64_t days_since_1970(const parquet::Int96& timestamp) {
  return std::int64_t{timestamp.value[2]} - parquet::kJulianToUnixEpochDays;
}

// Whether 64 bits hold the nanoseconds since 1970.
bool is_near(const parquet::Int96& timestamp) {
  std::int64_t days = days_since_1970(timestamp);
  std::int64_t nanoseconds = 0;  // of the day
  std::memcpy(&nanoseconds, &timestamp.value, sizeof(nanoseconds));
  // The first day in range begins before the range.
  if (days < 0 && __builtin_sub_overflow(nanoseconds, parquet::kNanosecondsPerDay, &nanoseconds)) return false;
  if (days < 0) ++days;
  std::int64_t all = 0;
  return !__builtin_mul_overflow(days, parquet::kNanosecondsPerDay, &all) &&
         !__builtin_add_overflow(all, nanoseconds, &all);
}

std::string day_of(const parquet::Int96& timestamp) {
  constexpr std::int64_t kMostDays = 10'000'000;  // std::chrono knows the years up to 32767
  const std::int64_t days = days_since_1970(timestamp);
  if (days > kMostDays) return "a day " + std::to_string(days) + " days after 1970-01-01";
  const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(days))};
  char text[32];
  std::snprintf(text, sizeof(text), "%04d-%02u-%02u", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
  return text;
}

}  // namespace

Result<std::optional<FarTimestamp>> find_far_timestamp(parquet::ColumnReader& column,
                                                       const std::function<bool()>& is_cancelled) {
  constexpr std::int64_t kValues = 1024;  // are read at a time
  auto& reader = static_cast<parquet::Int96Reader&>(column);
  // Columns without nulls have no definition levels, and those without lists no repetition levels. Both are then 0.
  std::vector<std::int16_t> definitions(kValues);
  std::vector<std::int16_t> repetitions(kValues);
  std::vector<parquet::Int96> values(kValues);
  std::uint64_t records = 0;
  while (reader.HasNext()) {
    if (is_cancelled && is_cancelled()) return fail(ErrorCode::kTemporary, "cancelled");
    std::int64_t read = 0;
    const std::int64_t levels = reader.ReadBatch(kValues, definitions.data(), repetitions.data(), values.data(), &read);
    if (levels <= 0) throw parquet::ParquetException("a column has fewer values than its header says");
    std::int64_t value = 0;
    for (std::int64_t i = 0; i < levels; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (repetitions[at] == 0) ++records;
      if (definitions[at] < reader.descr()->max_definition_level()) continue;
      if (value == read) throw parquet::ParquetException("a page has fewer values than its header says");
      const parquet::Int96& timestamp = values[static_cast<std::size_t>(value++)];
      if (!is_near(timestamp)) return FarTimestamp{records == 0 ? 0 : records - 1, day_of(timestamp)};
    }
  }
  return std::nullopt;
}

}  // namespace disttrain::input
