// disttrain: the command line. What verbs are asked: command_line.h; what they do: verbs.h.
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "common/daemon/exhaustion.h"
#include "common/daemon/signals.h"
#include "common/daemon/standard_streams.h"
#include "common/daemon/startup.h"
#include "common/nearest_word.h"
#include "common/result.h"
#include "tools/disttrain/command_line.h"

namespace {

// A verb that ends something is proposed to nobody who didn't all but write it.
bool may_be_meant(const std::string& word, const std::string& known) {
  const bool ends_something = known == "stop" || known == "kill";
  constexpr std::size_t kLongest = 8;  // longer words are something else anyway
  return !ends_something || (word.size() <= kLongest && disttrain::edit_distance(word, known) <= 1);
}

// "there is no verb 'stauts'; did you mean 'status'?"
std::string no_such(const std::string& what, const std::string& word, const std::vector<std::string>& known) {
  std::string list;
  std::vector<std::string> likely;
  for (const std::string& one : known) {
    list += (list.empty() ? "" : ", ") + one;
    if (may_be_meant(word, one)) likely.push_back(one);
  }
  const std::string nearest = disttrain::nearest_word(word, likely);
  return "there is no " + what + " '" + word + "'; " +
         (nearest.empty() ? "expected one of " + list : "did you mean '" + nearest + "'?");
}

// What stands where a verb is needed and is none, or an option that the verb doesn't have: the library would say first
// what else is missing for that. "": there is no such word.
std::string unknown_word(const CLI::App& app) {
  const CLI::App* innermost = &app;
  std::string path = app.get_name();
  while (!innermost->get_subcommands().empty()) {
    innermost = innermost->get_subcommands().front();
    path += " " + innermost->get_name();
  }
  const std::vector<std::string> words = app.remaining(true);
  if (words.empty()) return "";
  std::vector<std::string> known;
  if (words.front().starts_with('-')) {
    for (const CLI::Option* option : innermost->get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
      for (const std::string& name : option->get_snames()) known.push_back("-" + name);
    }
    const std::string option = words.front().substr(0, words.front().find('='));
    if (std::find(known.begin(), known.end(), option) != known.end())
      return path + ": '" + option + "' stands before the verb; write it after `" + path + "`";
    return path + ": " + no_such("option", option, known);
  }
  if (innermost->get_require_subcommand_min() == 0) return "";
  for (const CLI::App* verb : innermost->get_subcommands([](const CLI::App*) { return true; }))
    known.push_back(verb->get_name());
  return path + ": " + no_such("verb", words.front(), known);
}

// A script that takes an empty file for an answer has been told nothing. Who has seen enough (`| head`) knows it.
bool is_output_lost() {
  if (std::cout.flush()) return false;
  pollfd out{STDOUT_FILENO, 0, 0};
  if (::poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0) return false;
  std::cerr << "disttrain: can't write to stdout: what was to be printed is lost; is its disk full, or is it closed?\n";
  return true;
}

// What a verb has started it stops as it ends, also where it runs out of something.
int run(disttrain::cli::CommandLine& line) {
  try {
    return line.run();
  } catch (...) {
    const auto exhausted = disttrain::daemon::exhaustion_in(std::current_exception());
    if (!exhausted) throw;
    return disttrain::daemon::report("disttrain", *exhausted);
  }
}

}  // namespace

int main(int argc, char** argv) {
  disttrain::daemon::open_standard_streams();
  disttrain::daemon::ignore_write_signals();
  disttrain::daemon::end_when_exhausted("disttrain");
  if (disttrain::Status limits = disttrain::daemon::raise_limits(0); !limits)
    return disttrain::daemon::report("disttrain", limits.error());
  disttrain::cli::CommandLine line;
  try {
    line.app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (const std::string problem = unknown_word(line.app); error.get_exit_code() != 0 && !problem.empty()) {
      std::cerr << problem << "\nRun with --help for more information.\n";
      return static_cast<int>(disttrain::ErrorCode::kUsage);
    }
    return line.app.exit(error) == 0 ? 0 : static_cast<int>(disttrain::ErrorCode::kUsage);
  }
  const int code = run(line);
  return is_output_lost() ? static_cast<int>(disttrain::ErrorCode::kFailed) : code;
}
