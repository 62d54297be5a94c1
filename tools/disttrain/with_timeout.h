// For system calls that may hang forever: a name server that doesn't answer, NFS without its server.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

#include "common/time.h"

namespace disttrain::cli {

// Asks `question` on a thread of its own and returns its answer; none if that takes longer than `patience`. The thread
// then runs on, and nobody can end it, so `question` must own all that it refers to.
template <typename Question>
std::optional<std::invoke_result_t<Question>> within(Duration patience, Question question) {
  std::packaged_task<std::invoke_result_t<Question>()> task(std::move(question));
  auto answer = task.get_future();
  std::thread(std::move(task)).detach();
  if (answer.wait_for(patience) != std::future_status::ready) return std::nullopt;
  return answer.get();
}

}  // namespace disttrain::cli
