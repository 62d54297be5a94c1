#include "chiefd/core/job/savers.h"

#include <utility>

#include "chiefd/core/job/parts.h"

namespace disttrain::chiefd {
namespace {

// If no attempt begins within this time, the chief refuses the client's request.
constexpr int kLongestWait = 20;  // heartbeat timeouts

}  // namespace

Savers::Savers(JobParts& parts)
    : setup_(parts.setup),
      stage_(parts.stage),
      condition_(parts.condition),
      folder_(parts.folder),
      schedule_(parts.schedule),
      checkpointing_(parts.checkpointing) {}

void Savers::save(Turn& turn, ClientId client) {
  const std::string& directory = setup_.config().checkpoint.directory;
  const auto refuse = [&](ErrorCode code, const std::string& why) {
    turn.actions.push_back(AnswerClient{client, Refused{code, "job " + setup_.name() + ": " + why}});
  };
  if (!setup_.takes_checkpoints())
    return refuse(ErrorCode::kConfig, "it takes no checkpoints, because checkpoint.directory isn't set");
  if (!stage_.is(Stage::kTrain) || condition_.state() != JobState::kRunning)
    return refuse(ErrorCode::kTemporary,
                  "it is " + std::string(to_string(condition_.state())) + ": " + condition_.reason());
  if (!folder_.is_open())
    return refuse(ErrorCode::kTemporary, folder_.error().empty() ? directory + " is still being opened"
                                                                 : directory + " can't be used: " + folder_.error());
  if (!is_any()) until_ = turn.now + setup_.timeouts.silent * kLongestWait;
  clients_.push_back(client);
  schedule_.try_at(turn.now);
  checkpointing_.advance(turn);
}

void Savers::save_for_worker(Turn& turn) {
  if (!setup_.takes_checkpoints() || !stage_.is(Stage::kTrain) || !folder_.is_open()) return;
  if (!is_any()) until_ = turn.now + setup_.timeouts.silent * kLongestWait;
  is_worker_waiting_ = true;
  schedule_.try_at(turn.now);
  checkpointing_.advance(turn);
}

void Savers::review(Turn& turn) {
  if (checkpointing_.is_under_way()) until_ = turn.now + setup_.timeouts.silent * kLongestWait;
  if (turn.now < until_ || !is_any()) return;
  refuse(turn, ErrorCode::kTemporary,
         "job " + setup_.name() + ": no checkpoint could begin; the job is " +
             std::string(to_string(condition_.state())) + ": " + condition_.reason());
}

void Savers::answer(Turn& turn, const CheckpointSaved& saved) {
  is_worker_waiting_ = false;
  for (const ClientId client : std::exchange(clients_, {})) turn.actions.push_back(AnswerClient{client, saved});
}

void Savers::refuse(Turn& turn, ErrorCode code, const std::string& why) {
  is_worker_waiting_ = false;
  for (const ClientId client : std::exchange(clients_, {}))
    turn.actions.push_back(AnswerClient{client, Refused{code, why}});
}

}  // namespace disttrain::chiefd
