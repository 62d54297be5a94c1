// Errors of a command line. A message names the program and its verb, what was found and what was expected.
#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace disttrain::daemon {

// One line for an error of `app` (not for help or version).
std::string usage_error(const CLI::App& app, const CLI::ParseError& error);

// Refuses empty values of all options of `app` and its verbs: an empty value comes from an unset variable of a script,
// and would mean "any". Call it after all options are added.
void refuse_empty_values(CLI::App& app);

}  // namespace disttrain::daemon
