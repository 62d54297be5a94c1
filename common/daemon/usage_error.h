// Error messages for a wrong command line. A message names the program and its verb, the word that was found, and the
// words that were expected.
#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace disttrain::daemon {

// Returns a message of one line for an error of `app`. Don't call it for help or version.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error);

// Makes all options of `app` and its verbs refuse empty values. An empty value usually comes from an unset variable of
// a script, and would be taken to mean "any". Call this after all options are added.
void refuse_empty_values(CLI::App& app);

}  // namespace disttrain::daemon
