// Questions to the system that may hang for ever: a name server that doesn't answer, NFS without its server.
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

// What `question` returns. None: it hasn't within `patience`; it goes on by itself on a thread of its own, which nobody
// can end, so it owns all that it refers to.
template <typename Question>
std::optional<std::invoke_result_t<Question>> within(Duration patience, Question question) {
  std::packaged_task<std::invoke_result_t<Question>()> task(std::move(question));
  auto answer = task.get_future();
  std::thread(std::move(task)).detach();
  if (answer.wait_for(patience) != std::future_status::ready) return std::nullopt;
  return answer.get();
}

}  // namespace disttrain::cli
