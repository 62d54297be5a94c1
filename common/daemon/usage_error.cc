#include "common/daemon/usage_error.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "common/nearest_word.h"

namespace disttrain::daemon {

namespace {

// Suggests a verb that ends something (stop, kill) only if at most one letter is wrong.
bool may_be_meant(const std::string& word, const std::string& known) {
  const bool ends_something = known == "stop" || known == "kill";
  constexpr std::size_t kLongest = 8;  // longer words mean something else
  return !ends_something || (word.size() <= kLongest && edit_distance(word, known) <= 1);
}

std::string expected_one_of(const std::vector<std::string>& known) {
  std::string list;
  for (const std::string& one : known) list += (list.empty() ? "" : ", ") + one;
  return "expected one of " + list;
}

// Returns a message such as "there is no verb 'stauts'; did you mean 'status'?".
std::string no_such(const std::string& what, const std::string& word, const std::vector<std::string>& known) {
  std::vector<std::string> likely;
  for (const std::string& one : known)
    if (may_be_meant(word, one)) likely.push_back(one);
  const std::string nearest = nearest_word(word, likely);
  return "there is no " + what + " '" + word + "'; " +
         (nearest.empty() ? expected_one_of(known) : "did you mean '" + nearest + "'?");
}

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::vector<std::string> verbs_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(verb->get_name());
  return names;
}

}  // namespace

// Reports an unknown word first. The library would instead report that a verb or option is missing, although the user
// has only misspelt it.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* innermost = &app;
  std::string path = app.get_name();
  while (!innermost->get_subcommands().empty()) {
    innermost = innermost->get_subcommands().front();
    path += " " + innermost->get_name();
  }
  const bool wants_verb = innermost->get_require_subcommand_min() != 0;
  std::vector<std::string> words = app.remaining(true);
  std::erase(words, "--");  // the words after "--" aren't options
  if (words.empty() && wants_verb && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr)
    return path + ": there is no verb; " + expected_one_of(verbs_of(*innermost));
  if (words.empty()) return path + ": " + error.what();
  const std::string& word = words.front();
  if (word.starts_with('-')) {
    const std::vector<std::string> known = options_of(*innermost);
    const std::string option = word.substr(0, word.find('='));
    if (std::find(known.begin(), known.end(), option) != known.end())
      return path + ": '" + option + "' stands before the verb; write it after `" + path + "`";
    return path + ": " + no_such("option", option, known);
  }
  if (wants_verb) return path + ": " + no_such("verb", word, verbs_of(*innermost));
  return path + ": unexpected argument '" + word + "'";
}

void refuse_empty_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options([](const CLI::Option* one) { return one->get_items_expected_max() > 0; }))
    option->check([](const std::string& text) -> std::string { return text.empty() ? "its value is empty" : ""; });
  for (CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) refuse_empty_values(*verb);
}

}  // namespace disttrain::daemon
