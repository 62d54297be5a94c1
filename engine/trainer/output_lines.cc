#include "engine/trainer/output_lines.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/printable.h"

namespace disttrain::workerd {

bool LineLimit::admits(Instant now) {
  const std::chrono::duration<double> since = filled_at_ == Instant() ? Duration() : now - filled_at_;
  room_ = std::min(kLoggedLinesAtOnce, room_ + since.count() * kLoggedLinesPerSecond);
  filled_at_ = now;
  const bool has_room = room_ >= 1;
  if (has_room)
    --room_;
  else
    ++dropped_;
  return has_room;
}

std::uint64_t LineLimit::take_dropped() {
  return std::exchange(dropped_, 0);
}

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
  // A byte that isn't text is longer when it is shown, so the limit is checked again.
  for (auto line = lines_.rbegin(); line != lines_.rend(); ++line) {
    const std::string shown = printable(*line);
    if (!text.empty() && text.size() + shown.size() + 3 > kKeptOutputBytes) break;
    text.insert(0, "\n  " + std::string(cut_text(shown, kKeptOutputBytes)));
  }
  return text;
}

// A trainer may print gigabytes, and waits meanwhile. find_first_of("\n\r") took two thirds of the time of reading
// them, because it looks at each character by itself.
void OutputLines::add(std::string_view bytes, const OnLine& on_line) {
  for (;;) {
    const std::size_t newline = bytes.find('\n');
    std::string_view rest = bytes.substr(0, newline);
    for (std::size_t at = rest.find('\r'); at != std::string_view::npos; at = rest.find('\r')) {
      append(rest.substr(0, at));
      end(on_line);
      rest.remove_prefix(at + 1);
    }
    append(rest);
    if (newline == std::string_view::npos) return;
    end(on_line);
    bytes.remove_prefix(newline + 1);
  }
}

void OutputLines::append(std::string_view part) {
  const std::size_t room = kMaxOutputLineBytes - partial_.size();
  if (!is_cut_) partial_ += part.substr(0, room);
  is_cut_ = is_cut_ || part.size() > room;
}

void OutputLines::end(const OnLine& on_line) {
  if (partial_.find_first_not_of(" \t") != std::string::npos)
    on_line(is_cut_ ? std::string(cut_text(partial_, kMaxOutputLineBytes)) + " (the rest is left out)" : partial_);
  partial_.clear();
  is_cut_ = false;
}

}  // namespace disttrain::workerd
