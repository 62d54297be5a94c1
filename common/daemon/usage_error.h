// Errors of a command line. A message names the program and its verb, what was found, and what was expected.
#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace disttrain::daemon {

// One line, for an error of `app` that isn't one of its successes (help, version).
std::string usage_error(const CLI::App& app, const CLI::ParseError& error);

// A value that is given must not be empty, of any option of `app` and its verbs: it comes from a variable of a script
// that wasn't set, and would stand for "whichever". Call when all of them are there.
void refuse_empty_values(CLI::App& app);

}  // namespace disttrain::daemon
