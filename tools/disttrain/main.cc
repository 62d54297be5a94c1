// disttrain: the command line. What verbs are asked: command_line.h; what they do: verbs.h.
#include <CLI/CLI.hpp>
#include <iostream>
#include <string>
#include <vector>

#include "common/daemon/signals.h"
#include "common/nearest_word.h"
#include "common/result.h"
#include "tools/disttrain/command_line.h"

namespace {

// What stands where a verb is needed and is none; "" where nothing stands there.
std::string unknown_verb(const CLI::App& app) {
  const CLI::App* innermost = &app;
  std::string path = app.get_name();
  while (!innermost->get_subcommands().empty()) {
    innermost = innermost->get_subcommands().front();
    path += " " + innermost->get_name();
  }
  const std::vector<std::string> words = app.remaining(true);
  if (innermost->get_require_subcommand_min() == 0 || words.empty() || words.front().starts_with('-')) return "";
  std::vector<std::string> verbs;
  std::string list;
  for (const CLI::App* verb : innermost->get_subcommands([](const CLI::App*) { return true; })) {
    verbs.push_back(verb->get_name());
    list += (list.empty() ? "" : ", ") + verb->get_name();
  }
  const std::string nearest = disttrain::nearest_word(words.front(), verbs);
  return path + ": there is no verb '" + words.front() + "'; " +
         (nearest.empty() ? "expected one of " + list : "did you mean '" + nearest + "'?");
}

}  // namespace

int main(int argc, char** argv) {
  disttrain::daemon::ignore_broken_pipes();
  disttrain::cli::CommandLine line;
  try {
    line.app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (const std::string problem = unknown_verb(line.app); error.get_exit_code() != 0 && !problem.empty()) {
      std::cerr << problem << "\nRun with --help for more information.\n";
      return static_cast<int>(disttrain::ErrorCode::kUsage);
    }
    return line.app.exit(error) == 0 ? 0 : static_cast<int>(disttrain::ErrorCode::kUsage);
  }
  return line.run();
}
