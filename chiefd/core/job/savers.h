// Clients that have asked for a checkpoint now (`disttrain checkpoint save`) and wait for it.
#pragma once

#include <string>
#include <vector>

#include "chiefd/core/job/turn.h"

namespace disttrain::chiefd {

class CheckpointFolder;
class CheckpointSchedule;
class Checkpointing;
class Condition;
class StageWait;
struct JobParts;
struct JobSetup;

class Savers {
 public:
  explicit Savers(JobParts& parts);

  bool is_any() const { return !clients_.empty(); }
  // A client asks. It is answered when the checkpoint is there.
  void save(Turn& turn, ClientId client);
  // At each tick. A client waits for the attempt to begin, through a short pause too, but not for ever.
  void review(Turn& turn);
  void answer(Turn& turn, const CheckpointSaved& saved);
  void refuse(Turn& turn, ErrorCode code, const std::string& why);

 private:
  const JobSetup& setup_;
  StageWait& stage_;
  const Condition& condition_;
  const CheckpointFolder& folder_;
  CheckpointSchedule& schedule_;
  Checkpointing& checkpointing_;

  std::vector<ClientId> clients_;
  Instant until_;  // they wait, if no attempt begins before
};

}  // namespace disttrain::chiefd
