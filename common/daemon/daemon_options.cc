#include "common/daemon/daemon_options.h"

#include "common/daemon/startup.h"
#include "common/daemon/usage_error.h"

namespace disttrain::daemon {

const char* program_of(Role role) {
  if (role == Role::kPs) return "psd";
  return role == Role::kChief ? "chiefd" : "workerd";
}

const char* purpose_of(Role role) {
  if (role == Role::kPs) return "holds parameters and updates them";
  if (role == Role::kEvaluator) return "evaluates checkpoints";
  return role == Role::kWorker ? "computes gradients" : "keeps the cluster together";
}

void add_daemon_options(CLI::App& app, Role role, DaemonOptions& options) {
  app.add_option("--cluster", options.cluster_file, "the cluster file")->capture_default_str()->type_name("FILE.toml");
  if (role != Role::kChief)
    app.add_option("--index", options.index,
                   "number of this task's section in the cluster file, from 0; by default that of the section with "
                   "this host's address")
        ->type_name("N")
        ->check(CLI::Validator(
            [program = std::string(program_of(role))](const std::string& text) {
              const bool is_number = text.find_first_not_of("0123456789") == std::string::npos && text.size() < 10;
              return is_number ? "" : "\"" + text + "\" isn't a number; expected 0 or more, as in " + program + "@0";
            },
            ""));
  if (role == Role::kWorker)
    app.add_option(
           "--address", options.address,
           "HOST:PORT of a worker that isn't in the cluster file; needs --index and cluster.allow_unlisted_workers")
        ->type_name("HOST:PORT");
  if (role == Role::kWorker)
    app.add_option(
           "--role", options.role,
           "worker: computes gradients; evaluator: evaluates checkpoints, as an [[evaluator]] of the cluster file")
        ->capture_default_str()
        ->check(CLI::IsMember({"worker", "evaluator"}));
  app.add_flag("--check", options.is_check, "read the cluster file, report its errors, and end");
  if (role == Role::kChief)
    app.add_flag("--salvage", options.is_salvage,
                 "rename a damaged journal, start a new one with its readable records, and end");
  app.set_version_flag("--version", std::string(program_of(role)) + " " + kVersion);
  refuse_empty_values(app);
}

}  // namespace disttrain::daemon
