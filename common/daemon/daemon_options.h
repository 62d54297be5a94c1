// The command line options of a daemon. Manual pages and the shell completion are generated from them.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "common/ids.h"

namespace disttrain::daemon {

struct DaemonOptions {
  std::string cluster_file;  // its value before the options are parsed is the default
  std::optional<std::uint32_t> index;
  std::string address;          // only for a worker that the file doesn't name
  std::string role = "worker";  // workerd only: "worker" or "evaluator"
  bool is_check = false;
  bool is_salvage = false;  // chief only
};

const char* program_of(Role role);
const char* purpose_of(Role role);

// `options` outlives `app`.
void add_daemon_options(CLI::App& app, Role role, DaemonOptions& options);

}  // namespace disttrain::daemon
