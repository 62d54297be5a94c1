// Stores the clients that have asked for a checkpoint now (`disttrain checkpoint save`) and wait for it.
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

  bool is_any() const { return !clients_.empty() || is_worker_waiting_; }
  // A client asks for a checkpoint. The chief answers when the checkpoint is taken.
  void save(Turn& turn, ClientId client);
  // A worker's trainer asks for a checkpoint. It gets no answer. If the job isn't running, or its folder can't be used,
  // nothing happens.
  void save_for_worker(Turn& turn);
  // Called at each tick. Refuses the clients if no attempt has begun for 20 heartbeat timeouts. So clients wait through
  // a short pause of the job.
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
  bool is_worker_waiting_ = false;
  Instant until_;  // at this time the clients are refused if no attempt has begun
};

}  // namespace disttrain::chiefd
