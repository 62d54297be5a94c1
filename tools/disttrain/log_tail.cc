#include "tools/disttrain/log_tail.h"

#include <algorithm>
#include <deque>
#include <fstream>
#include <string_view>

#include "common/bounded_json.h"
#include "tools/disttrain/json.h"

namespace disttrain::cli {

namespace {

// A log line: "2026-11-20 23:45:01.123 error ps/1 text"
constexpr std::size_t kTimeWidth = 24;
constexpr std::string_view kError = "error ";

std::string error_of(const std::string& line) {
  for (const std::string_view program : {"chiefd: ", "psd: ", "workerd: "})
    if (line.starts_with(program)) return line.substr(program.size());
  if (line.size() > kTimeWidth && std::string_view(line).substr(kTimeWidth).starts_with(kError))
    return line.substr(std::min(line.find(' ', kTimeWidth + kError.size()), line.size() - 1) + 1);
  const Json json = line.starts_with("{") ? parse_bounded_json<Json>(line) : Json();
  return json.is_object() && text_of(json, "level") == "error" ? text_of(json, "message") : "";
}

}  // namespace

std::vector<std::string> last_lines(const std::filesystem::path& file, std::size_t most, std::uintmax_t begin) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  constexpr std::streamoff kEnough = 64 * 1024;
  const std::streamoff size = in.tellg();
  in.seekg(std::max({std::streamoff(0), size - kEnough, static_cast<std::streamoff>(begin)}));
  std::deque<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
    if (lines.size() > most) lines.pop_front();
  }
  return {lines.begin(), lines.end()};
}

std::string last_error(const std::filesystem::path& file, std::uintmax_t begin) {
  constexpr std::size_t kLooked = 100;
  const std::vector<std::string> lines = last_lines(file, kLooked, begin);
  for (auto line = lines.rbegin(); line != lines.rend(); ++line)
    if (std::string error = error_of(*line); !error.empty()) return error;
  return "";
}

}  // namespace disttrain::cli
