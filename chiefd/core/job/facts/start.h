// Stores facts about the start of a job or of a generation. The job gathers its tasks since a time, and workers may
// have failed since then.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "common/messages/session.h"
#include "common/result.h"
#include "common/time.h"

namespace disttrain::chiefd {

struct StartFacts {
  struct Failure {
    Error error;
    bool is_process = false;  // the process is to blame, and stays out; otherwise the worker may join in training
  };

  Instant gathers_since;                      // when the job began to gather its tasks
  std::optional<Instant> complete_enough_at;  // since when the job has enough tasks to start
  // In stage kDescribe: the workers that couldn't describe the model and the data, in the order of their answers. Each
  // is left out as soon as another worker has described them.
  std::vector<std::pair<Member, Error>> could_not_describe;
  // In stage kOpen: the workers of this generation that have failed or are lost.
  std::map<Member, Failure> could_not_open;
  Instant create_began;       // when the ps tasks were told to create the shards
  bool lacks_memory = false;  // in stage kRegather: the ps tasks that are there can't take the shards
};

}  // namespace disttrain::chiefd
