// disttrain bench step JOB: measures how long the engine takes for a step of a job. This program can't compute a model,
// so a workerd does it (workerd/bench).
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <vector>

#include "common/daemon/startup.h"
#include "tools/disttrain/up/program_path.h"
#include "tools/disttrain/verbs.h"

namespace disttrain::cli {

int bench_step(const BenchStepOptions& options) {
  const std::string program = program_path("workerd").string();
  std::vector<std::string> words = {program,
                                    "bench-step",
                                    options.job,
                                    options.device,
                                    std::to_string(options.threads),
                                    std::to_string(options.rounds),
                                    options.random ? "random" : "data",
                                    options.json ? "json" : "text"};
  words.insert(words.end(), options.sets.begin(), options.sets.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(program.c_str(), arguments.data());
  return daemon::report(
      "disttrain bench step",
      {ErrorCode::kUnavailable, "can't start " + program + ": " + std::generic_category().message(errno) +
                                    "; the worker's program on this host computes the steps (package workerd)"});
}

}  // namespace disttrain::cli
