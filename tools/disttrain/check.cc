// disttrain check FILE... [--set ...]: reads each file as a daemon would, and prints all errors. It starts nothing.
#include <iostream>

#include "common/config/reader/reader.h"
#include "common/daemon/startup.h"
#include "tools/disttrain/verbs.h"

namespace disttrain::cli {

namespace {

std::string count(std::size_t number, const std::string& what) {
  return std::to_string(number) + " " + what + (number == 1 || what == "ps" ? "" : "s");
}

// Sets `has_job` if the file is a job file.
Result<std::string> check_file(const std::string& path, const std::vector<std::string>& sets, bool& has_job) {
  const auto kind = config::kind_of_file(path);
  if (!kind) return tl::unexpected<Error>(kind.error());
  if (*kind == config::FileKind::kCluster) {
    const auto cluster = config::read_cluster(path);
    if (!cluster) return tl::unexpected<Error>(cluster.error());
    return "cluster " + cluster->name + " with 1 chief, " + count(cluster->ps.size(), "ps") + " and " +
           count(cluster->workers.size(), "worker") +
           (cluster->evaluators.empty() ? "" : ", " + count(cluster->evaluators.size(), "evaluator"));
  }
  has_job = true;
  const auto job = config::read_job_file(path, sets);
  if (!job) return tl::unexpected<Error>(job.error());
  return "job " + job->config.job.name;
}

}  // namespace

int check(const CheckOptions& options) {
  int exit_code = 0;
  bool has_job = false;
  for (const std::string& path : options.files) {
    const auto found = check_file(path, options.sets, has_job);
    if (found)
      std::cout << path << " is valid: " << *found << '\n';
    else
      exit_code = daemon::report("disttrain check", found.error());
  }
  if (exit_code == 0 && !has_job && !options.sets.empty())
    return daemon::report("disttrain check", Error{ErrorCode::kUsage, "--set " + options.sets.front() +
                                                                          ": it changes job files, but none is given"});
  return exit_code;
}

}  // namespace disttrain::cli
