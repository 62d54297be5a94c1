// disttrain_reference: prints the verbs and options of each program, and all keys of cluster.toml and job.toml, as
// JSON.
//
// The options and keys of the manual pages and of bash's completion come from this program, so none can be missing from
// a page. The rest of a page is written by hand. A hidden verb that prints the tables was rejected, because every
// installed program would have it.
#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/config/reader/keys.h"
#include "common/daemon/daemon_options.h"
#include "common/daemon/startup.h"
#include "tools/disttrain/command_line.h"

namespace {

using namespace disttrain;
using Json = nlohmann::ordered_json;

// Returns the choices of an option. CLI::IsMember writes them into the name of the option's type, as "{a,b,c}".
Json choices_of(const std::string& type) {
  Json choices = Json::array();
  const std::size_t begin = type.find('{');
  const std::size_t end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos) return choices;
  std::string word;
  for (const char c : type.substr(begin + 1, end - begin - 1) + ",") {
    if (c != ',') {
      word += c;
    } else {
      choices.push_back(word);
      word.clear();
    }
  }
  return choices;
}

Json option_json(const CLI::Option& option) {
  Json names = Json::array();
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  const bool is_flag = option.get_expected_max() == 0 || option.get_type_size_max() == 0;
  const std::string type = is_flag ? "" : option.get_type_name();
  return {{"names", names},
          {"positional", option.get_positional() ? option.get_name(true, false) : ""},
          {"help", option.get_description()},
          {"type",
           type.substr(0, type.find(':') == std::string::npos || type.find('{') == std::string::npos ? std::string::npos
                                                                                                     : type.find(':'))},
          {"choices", choices_of(type)},
          {"default", option.get_default_str()},
          {"required", option.get_required()},
          {"many", option.get_items_expected_max() > 1}};
}

Json program_json(CLI::App& app) {
  Json options = Json::array();
  for (const CLI::Option* option : app.get_options()) options.push_back(option_json(*option));
  Json verbs = Json::object();
  for (CLI::App* verb : app.get_subcommands([](CLI::App*) { return true; }))
    verbs[verb->get_name()] = program_json(*verb);
  return {{"help", app.get_description()}, {"options", options}, {"verbs", verbs}};
}

// Adds the default of each key below `path`, such as "train.optimizer.rule" -> "\"sgd\"". For [[ps]] and [[worker]] it
// adds the keys of their only entry.
void collect_defaults(const config::TomlValue& value, const std::string& path,
                      std::map<std::string, std::string>& defaults) {
  const auto* table = value.as<config::TomlValue::Table>();
  const auto* list = value.as<config::TomlValue::Array>();
  if (table != nullptr && !table->empty()) {
    for (const config::TomlEntry& entry : *table)
      collect_defaults(entry.value, path.empty() ? entry.key : path + "." + entry.key, defaults);
  } else if (list != nullptr && list->size() == 1 && list->front().as<config::TomlValue::Table>() != nullptr) {
    collect_defaults(list->front(), path, defaults);
  } else {
    defaults[path] = config::to_toml(value);
  }
}

Json keys_json(const config::Keys& keys) {
  std::map<std::string, std::string> defaults;
  collect_defaults(config::TomlValue{config::write_table(keys), {}}, "", defaults);
  Json rows = Json::array();
  for (const config::KeyDoc& key : config::describe(keys))
    rows.push_back({{"name", key.name},
                    {"expected", key.expected},
                    {"doc", key.doc},
                    {"required", key.is_required},
                    {"table", key.is_table},
                    {"default", key.is_required || key.is_table ? "" : defaults[key.name]}});
  return rows;
}

}  // namespace

int main() {
  Json all;
  cli::CommandLine line;
  all["programs"]["disttrain"] = program_json(line.app);
  for (const Role role : {Role::kChief, Role::kPs, Role::kWorker}) {
    daemon::DaemonOptions options;
    options.cluster_file = daemon::kDefaultClusterFile;
    CLI::App app(daemon::purpose_of(role), daemon::program_of(role));
    daemon::add_daemon_options(app, role, options);
    all["programs"][daemon::program_of(role)] = program_json(app);
  }
  ClusterConfig cluster;
  cluster.ps.emplace_back();
  cluster.workers.emplace_back();
  cluster.evaluators.emplace_back();
  all["keys"]["cluster"] = keys_json(config::cluster_keys(cluster));
  JobConfig job;
  all["keys"]["job"] = keys_json(config::job_keys(job));
  all["version"] = daemon::kVersion;
  std::cout << all.dump(1) << '\n';
  return 0;
}
