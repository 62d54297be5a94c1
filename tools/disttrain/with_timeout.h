// Puts a time limit on system calls that may hang for ever, because a name server or an NFS server doesn't answer.
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

// Runs `question` on another thread and returns its result, or none if it takes longer than `patience`. After a
// time-out the thread goes on, because nothing can end it. So `question` must own all objects that it uses.
template <typename Question>
std::optional<std::invoke_result_t<Question>> within(Duration patience, Question question) {
  std::packaged_task<std::invoke_result_t<Question>()> task(std::move(question));
  auto answer = task.get_future();
  std::thread(std::move(task)).detach();
  if (answer.wait_for(patience) != std::future_status::ready) return std::nullopt;
  return answer.get();
}

}  // namespace disttrain::cli
