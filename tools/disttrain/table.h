// A table as text. The first column is aligned left. The other columns are aligned right, or left with Align::kLeft.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "common/printable.h"
#include "tools/disttrain/columns.h"

namespace disttrain::cli {

class Table {
 public:
  enum class Align { kLeft, kRight };

  explicit Table(std::vector<std::string> header, Align others = Align::kRight) : others_(others) {
    rows_.push_back(std::move(header));
  }

  // Makes the cells printable, each on one line.
  void add(std::vector<std::string> row) {
    for (std::string& cell : row) cell = printable(cell);
    rows_.push_back(std::move(row));
  }

  std::string text() const {
    std::vector<std::size_t> widths(rows_.front().size(), 0);
    for (const auto& row : rows_)
      for (std::size_t c = 0; c < row.size() && c < widths.size(); ++c)
        widths[c] = std::max(widths[c], columns_of(row[c]));
    std::string text;
    for (const auto& row : rows_) {
      std::string line;
      for (std::size_t c = 0; c < row.size() && c < widths.size(); ++c) {
        const std::string blank(widths[c] - columns_of(row[c]), ' ');
        const bool is_left = c == 0 || others_ == Align::kLeft;
        line += (c == 0 ? "" : "  ") + (is_left ? row[c] + blank : blank + row[c]);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
    return text;
  }

 private:
  const Align others_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace disttrain::cli
