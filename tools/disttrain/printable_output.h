// The door through which all output of the command line goes. Names and texts come from files, jobs and other hosts, so
// any of them could have codes that control the terminal, or that hide text. Here they become visible (printable.h).
#pragma once

#include <memory>
#include <ostream>
#include <string_view>

namespace disttrain::cli {

// While it exists, everything that is written to `out` is made printable, except what write_codes() writes. Lines and
// tabs stay. `out` must outlive it. One thread at a time.
class PrintableOutput {
 public:
  explicit PrintableOutput(std::ostream& out);
  ~PrintableOutput();
  PrintableOutput(const PrintableOutput&) = delete;
  PrintableOutput& operator=(const PrintableOutput&) = delete;

 private:
  class Filter;

  std::ostream& out_;
  const std::unique_ptr<Filter> filter_;

  friend void write_codes(std::ostream& out, std::string_view codes);
};

// Writes codes that control the terminal, as they are.
void write_codes(std::ostream& out, std::string_view codes);

}  // namespace disttrain::cli
