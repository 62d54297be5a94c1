// disttrain predict PATH OUT: computes a checkpoint's outputs for a data set. This program can't compute a model, so a
// workerd does it (workerd/predict).
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <tuple>
#include <vector>

#include "common/daemon/startup.h"
#include "common/daemon/threads.h"
#include "common/printable.h"
#include "tools/disttrain/checkpoint/checkpoint.h"
#include "tools/disttrain/json.h"
#include "tools/disttrain/up/program_path.h"
#include "tools/disttrain/verbs.h"

namespace disttrain::cli {

namespace {

Result<std::string> quoted_as_in_toml(const std::string& option, const std::string& value) {
  try {
    return Json(value).dump();
  } catch (const Json::type_error&) {
    return fail(ErrorCode::kUsage, option + " is \"" + printable(value) +
                                       "\", which isn't UTF-8; expected UTF-8, as the settings of a job are: rename "
                                       "the files or folder, or make a link to it with such a name");
  }
}

}  // namespace

int predict(const PredictOptions& options) {
  if (Status there = check_folder_of(absolute_path(options.out)); !there)
    return daemon::report("disttrain predict", there.error());
  const std::string program = program_path("workerd").string();
  std::vector<std::string> words = {
      program,     "predict",      options.checkpoint,
      options.out, options.device, std::to_string(options.threads.value_or(daemon::cores_given()))};
  for (const auto& [option, key, value] :
       {std::tuple("--data", "evaluate.path", options.data), std::tuple("--files", "evaluate.files", options.files),
        std::tuple("--labels", "evaluate.labels", options.labels)}) {
    if (value.empty()) continue;
    const Result<std::string> quoted = quoted_as_in_toml(option, value);
    if (!quoted) return daemon::report("disttrain predict", quoted.error());
    words.push_back(std::string(key) + "=" + *quoted);
  }
  if (!options.files.empty()) words.push_back("evaluate.records=[]");  // the job's records are those of its own files
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
