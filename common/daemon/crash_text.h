// Builds text in memory that was allocated before, for use in signal handlers. It needs no allocation, lock or locale.
// Text that doesn't fit is dropped.
#pragma once

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace disttrain::daemon {

class CrashText {
 public:
  explicit CrashText(std::span<char> memory) : memory_(memory) {}

  std::string_view view() const { return {memory_.data(), size_}; }

  void add(std::string_view text) {
    const std::size_t length = std::min(text.size(), memory_.size() - size_);
    std::memcpy(memory_.data() + size_, text.data(), length);
    size_ += length;
  }
  void add_number(std::uint64_t number, int base = 10, std::size_t digits = 1) {
    char text[24];
    const auto [end, error] = std::to_chars(text, text + sizeof text, number, base);
    const auto length = static_cast<std::size_t>(end - text);
    for (std::size_t i = length; i < digits; ++i) add("0");
    add({text, length});
  }

  // Writes a log line in the form of to_text() or to_json() in log_entry.h, with its line feed.
  void add_log_line(bool is_json, std::int64_t wall_nanoseconds, std::string_view level, std::string_view task,
                    std::string_view text, std::string_view event = "") {
    if (is_json) add("{\"time\":\"");
    add_time(wall_nanoseconds, is_json);
    add(is_json ? "Z\",\"level\":\"" : " ");
    add(level);
    if (!is_json)
      for (std::size_t i = level.size(); i < 5; ++i) add(" ");
    add(is_json ? "\",\"task\":\"" : " ");
    add(task);
    add(is_json ? "\",\"message\":\"" : " ");
    for (const char c : text) add_printable(c, is_json);
    if (is_json && !event.empty()) {
      add("\",\"event\":\"");
      add(event);
    }
    add(is_json ? "\"}\n" : "\n");
  }

 private:
  void add_time(std::int64_t wall_nanoseconds, bool is_json) {
    using namespace std::chrono;
    const sys_time<nanoseconds> time{nanoseconds(wall_nanoseconds)};
    const auto day = floor<days>(time);
    const year_month_day date(day);
    const hh_mm_ss clock(floor<microseconds>(time - day));
    add_number(static_cast<std::uint64_t>(static_cast<int>(date.year())), 10, 4);
    add("-");
    add_number(static_cast<unsigned>(date.month()), 10, 2);
    add("-");
    add_number(static_cast<unsigned>(date.day()), 10, 2);
    add(is_json ? "T" : " ");
    add_number(static_cast<std::uint64_t>(clock.hours().count()), 10, 2);
    add(":");
    add_number(static_cast<std::uint64_t>(clock.minutes().count()), 10, 2);
    add(":");
    add_number(static_cast<std::uint64_t>(clock.seconds().count()), 10, 2);
    add(".");
    const auto fraction = static_cast<std::uint64_t>(clock.subseconds().count());
    add_number(is_json ? fraction : fraction / 1000, 10, is_json ? 6 : 3);
  }

  void add_printable(char c, bool is_json) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f)
      add(" ");
    else if (is_json && (c == '"' || c == '\\'))
      add(c == '"' ? "\\\"" : "\\\\");
    else
      add({&c, 1});
  }

  const std::span<char> memory_;
  std::size_t size_ = 0;
};

}  // namespace disttrain::daemon
