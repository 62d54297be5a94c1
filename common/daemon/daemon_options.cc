#include "common/daemon/daemon_options.h"

#include "common/daemon/startup.h"
#include "common/daemon/usage_error.h"

namespace disttrain::daemon {

const char* program_of(Role role) {
  return role == Role::kPs ? "psd" : role == Role::kWorker ? "workerd" : "chiefd";
}

const char* purpose_of(Role role) {
  if (role == Role::kPs) return "holds parameters and updates them";
  return role == Role::kWorker ? "computes gradients" : "keeps the cluster together";
}

void add_daemon_options(CLI::App& app, Role role, DaemonOptions& options) {
  app.add_option("--cluster", options.cluster_file, "the cluster file")->capture_default_str()->type_name("FILE.toml");
  if (role != Role::kChief)
    app.add_option("--index", options.index, "this task's place among the file's, from 0; else told by the address")
        ->type_name("N")
        ->check(CLI::Validator(
            [program = std::string(program_of(role))](const std::string& text) {
              const bool is_number = text.find_first_not_of("0123456789") == std::string::npos && text.size() < 10;
              return is_number ? "" : "\"" + text + "\" is no index; expected a number from 0, as in " + program + "@0";
            },
            ""));
  if (role == Role::kWorker)
    app.add_option("--address", options.address,
                   "HOST:PORT of a worker whose --index the file doesn't name (cluster.allow_unlisted_workers)")
        ->type_name("HOST:PORT");
  app.add_flag("--check", options.is_check, "read the cluster file, say what is wrong with it, and end");
  if (role == Role::kChief)
    app.add_flag("--salvage", options.is_salvage,
                 "set a damaged journal aside, begin one with what can be read of it, and end");
  app.set_version_flag("--version", std::string(program_of(role)) + " " + kVersion);
  refuse_empty_values(app);
}

}  // namespace disttrain::daemon
