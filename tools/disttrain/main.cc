// disttrain: the program of the command line. command_line.h declares the verbs and their options; verbs.h has the
// functions that run them.
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>

#include "common/daemon/exhaustion.h"
#include "common/daemon/signals.h"
#include "common/daemon/standard_streams.h"
#include "common/daemon/startup.h"
#include "common/daemon/usage_error.h"
#include "common/result.h"
#include "tools/disttrain/command_line.h"
#include "tools/disttrain/printable_output.h"

namespace {

// If output couldn't be written, prints an error and returns true. Without the message, a script could take the
// incomplete output for the whole answer. It is no error if the reader has closed the pipe, as `disttrain logs | head`
// does.
bool is_output_lost() {
  if (std::cout.flush()) return false;
  pollfd out{STDOUT_FILENO, 0, 0};
  if (::poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0) return false;
  std::cerr << "disttrain: can't write to stdout, so output is lost; is the disk full, or is stdout closed?\n";
  return true;
}

// Runs the verb and catches its exceptions. So a verb that runs out of memory still stops the processes that it has
// started.
int run(disttrain::cli::CommandLine& line) {
  try {
    return line.run();
  } catch (const std::filesystem::filesystem_error& error) {
    return disttrain::daemon::report("disttrain", {disttrain::ErrorCode::kNoInput, error.what()});
  } catch (...) {
    const auto exhausted = disttrain::daemon::exhaustion_in(std::current_exception());
    if (!exhausted) throw;
    return disttrain::daemon::report("disttrain", *exhausted);
  }
}

}  // namespace

int main(int argc, char** argv) {
  disttrain::daemon::open_standard_streams();
  const disttrain::cli::PrintableOutput out(std::cout);
  const disttrain::cli::PrintableOutput err(std::cerr);
  disttrain::daemon::ignore_write_signals();
  disttrain::daemon::end_when_exhausted("disttrain");
  if (disttrain::Status limits = disttrain::daemon::raise_limits(0); !limits)
    return disttrain::daemon::report("disttrain", limits.error());
  disttrain::cli::CommandLine line;
  try {
    line.app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      line.app.exit(error);
      return is_output_lost() ? static_cast<int>(disttrain::ErrorCode::kFailed) : 0;
    }
    std::cerr << disttrain::daemon::usage_error(line.app, error) << "\nRun with --help for more information.\n";
    return static_cast<int>(disttrain::ErrorCode::kUsage);
  }
  const int code = run(line);
  return is_output_lost() ? static_cast<int>(disttrain::ErrorCode::kFailed) : code;
}
