// Cuts random output into lines, in parts of any size, and compares them with those of a naive twin.
#include "engine/trainer/output_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/random.h"

namespace disttrain::workerd {
namespace {

using testing::ElementsAre;

class OutputLinesTest : public testing::Test {
 protected:
  void add(std::string_view bytes) {
    lines_.add(bytes, [this](const std::string& line) { found_.push_back(line); });
  }
  std::vector<std::string> end() {
    lines_.end([this](const std::string& line) { found_.push_back(line); });
    return std::exchange(found_, {});
  }

 private:
  OutputLines lines_;
  std::vector<std::string> found_;
};

// Looks at one character at a time.
std::vector<std::string> naive_lines(const std::string& output) {
  std::vector<std::string> lines(1);
  for (const char c : output) {
    if (c == '\n' || c == '\r')
      lines.emplace_back();
    else
      lines.back() += c;
  }
  std::erase_if(lines, [](const std::string& line) { return line.find_first_not_of(" \t") == std::string::npos; });
  for (std::string& line : lines)
    if (line.size() > kMaxOutputLineBytes) line = line.substr(0, kMaxOutputLineBytes) + " (the rest is left out)";
  return lines;
}

TEST_F(OutputLinesTest, AreThoseOfANaiveTwin) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed, stream_of("output lines test"));
    std::string output;
    while (output.size() < 5000) {
      output.append(random.below(10) == 0 ? random.below(3000) : random.below(5), 'x');
      output += " \t\n\r"[random.below(4)];
    }
    for (std::string_view rest = output; !rest.empty();) {
      const std::size_t size = std::min<std::size_t>(1 + random.below(1000), rest.size());
      add(rest.substr(0, size));
      rest.remove_prefix(size);
    }
    EXPECT_EQ(end(), naive_lines(output));
  }
}

TEST_F(OutputLinesTest, AnUnfinishedLineIsALine) {
  add("one\r\ntw");
  add("o\rthree");
  EXPECT_THAT(end(), ElementsAre("one", "two", "three"));
}

}  // namespace
}  // namespace disttrain::workerd
