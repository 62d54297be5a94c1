#include "workerd/trainer/output_lines.h"

#include "common/printable.h"

namespace disttrain::workerd {

void LastLines::add(const std::string& line) {
  lines_.push_back(line);
  bytes_ += line.size() + 3;
  while (lines_.size() > 1 && (lines_.size() > kKeptOutputLines || bytes_ > kKeptOutputBytes)) {
    bytes_ -= lines_.front().size() + 3;
    lines_.pop_front();
  }
}

std::string LastLines::text() const {
  std::string text;
  for (const std::string& line : lines_) text += "\n  " + line;
  return text;
}

void OutputLines::add(std::string_view bytes, const OnLine& on_line) {
  while (!bytes.empty()) {
    const std::size_t newline = bytes.find_first_of("\n\r");
    const std::string_view part = bytes.substr(0, newline);
    const std::size_t room = kMaxOutputLineBytes - partial_.size();
    if (!is_cut_) partial_ += part.substr(0, room);
    is_cut_ = is_cut_ || part.size() > room;
    if (newline == std::string_view::npos) return;
    end(on_line);
    bytes.remove_prefix(newline + 1);
  }
}

void OutputLines::end(const OnLine& on_line) {
  if (partial_.find_first_not_of(" \t") != std::string::npos)
    on_line(printable(cut_text(partial_, kMaxOutputLineBytes)) + (is_cut_ ? " (the rest is left out)" : ""));
  partial_.clear();
  is_cut_ = false;
}

}  // namespace disttrain::workerd
