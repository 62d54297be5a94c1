// What is wrong with a command line, in this suite's words: the program and its verb, what was found, what was
// expected.
#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace disttrain::daemon {

// One line, for an error of `app` that isn't one of its successes (help, version).
std::string usage_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace disttrain::daemon
