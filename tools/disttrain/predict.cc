// disttrain predict PATH OUT: computes a checkpoint's outputs for a data set. This program can't compute a model, so a
// workerd does it (workerd/predict).
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <vector>

#include "common/daemon/startup.h"
#include "common/daemon/threads.h"
#include "tools/disttrain/checkpoint/checkpoint.h"
#include "tools/disttrain/json.h"
#include "tools/disttrain/up/program_path.h"
#include "tools/disttrain/verbs.h"

namespace disttrain::cli {

int predict(const PredictOptions& options) {
  if (Status there = check_folder_of(absolute_path(options.out)); !there)
    return daemon::report("disttrain predict", there.error());
  const std::string program = program_path("workerd").string();
  std::vector<std::string> words = {
      program,     "predict",      options.checkpoint,
      options.out, options.device, std::to_string(options.threads.value_or(daemon::cores_given()))};
  const auto set = [&words](const char* key, const std::string& value) {
    if (!value.empty()) words.push_back(std::string(key) + "=" + Json(value).dump());  // quoted as in TOML
  };
  set("evaluate.path", options.data);
  set("evaluate.files", options.files);
  if (!options.files.empty()) words.push_back("evaluate.records=[]");  // the job's records are those of its own files
  set("evaluate.labels", options.labels);
  words.insert(words.end(), options.sets.begin(), options.sets.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(program.c_str(), arguments.data());
  return daemon::report(
      "disttrain predict",
      {ErrorCode::kUnavailable, "can't start " + program + ": " + std::generic_category().message(errno) +
                                    "; predictions need the worker's program on this host (package workerd)"});
}

}  // namespace disttrain::cli
