// Formats sizes and times for people.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>

#include "common/bounds.h"
#include "common/format_duration.h"

namespace disttrain::cli {

// "1.5 MiB".
inline std::string bytes_text(std::uint64_t bytes) {
  char text[64];
  if (bytes >= (std::uint64_t{1} << 30))
    std::snprintf(text, sizeof(text), "%.2f GiB", static_cast<double>(bytes) / (1 << 30));
  else if (bytes >= (1 << 20))
    std::snprintf(text, sizeof(text), "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  else
    std::snprintf(text, sizeof(text), "%.1f KiB", static_cast<double>(bytes) / 1024);
  return text;
}

// Formats seconds like format_duration(), rounded to microseconds. NaN (unknown) and times beyond kMaxDuration become
// "-".
inline std::string seconds_text(double seconds) {
  if (!(std::abs(seconds) <= to_seconds(kMaxDuration))) return "-";
  return format_duration(std::chrono::microseconds(std::llround(seconds * 1e6)));
}

// Formats a loss like "0.3121". NaN (unknown) becomes "-".
inline std::string loss_text(double loss) {
  if (!std::isfinite(loss)) return "-";
  char text[64];
  std::snprintf(text, sizeof(text), "%.4f", loss);
  return text;
}

// Formats Unix time as "2026-11-20T23:45:00Z". Returns "" if the year has more than four digits.
inline std::string time_text(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm utc{};
  char text[64] = "";
  if (gmtime_r(&time, &utc) == nullptr || utc.tm_year < 0 || utc.tm_year > 8099) return "";
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace disttrain::cli
