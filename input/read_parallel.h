// Reads several files at the same time. It starts a few threads, which end before it returns.
#pragma once

#include <algorithm>
#include <atomic>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "common/os/crash_stack.h"
#include "common/result.h"

namespace disttrain::input {

inline constexpr std::size_t kMaxReaderThreads = 8;
inline constexpr std::size_t kFilesOfGroup = 128;

// Starts so many threads that call work(), or fewer if the system refuses more. Their destructors wait for their ends.
template <typename Work>
std::vector<std::jthread> start_threads(std::size_t count, const Work& work) {
  std::vector<std::jthread> threads;
  try {
    while (threads.size() < count) threads.emplace_back(work);
  } catch (const std::system_error&) {
  }
  return threads;
}

// Calls read(path), which returns a Result<T>, once for each path. The calls may come from any thread. Returns the
// results in the order of the paths. If some of them are errors, returns the one that comes first in this order. Its
// text also says how many other files can't be read.
template <typename T, typename Read>
Result<std::vector<T>> read_parallel(std::span<const std::string> paths, Read read) {
  std::vector<std::optional<Result<T>>> results(paths.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [paths, &results, &next, &read] {
    use_crash_stack();
    for (std::size_t i = next++; i < paths.size(); i = next++) {
      try {
        results[i].emplace(read(paths[i]));
      } catch (const std::bad_alloc&) {
        results[i].emplace(fail(ErrorCode::kConfig, paths[i] + ": its records need more memory than this host has"));
      }
    }
  };
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  {
    const auto others =
        start_threads(std::max<std::size_t>(std::min({paths.size(), cores, kMaxReaderThreads}), 1) - 1, work);
    work();
  }
  std::vector<T> values;
  values.reserve(paths.size());
  for (std::size_t i = 0; i < paths.size(); ++i) {
    Result<T>& result = *results[i];
    if (result.has_value()) {
      values.push_back(std::move(*result));
      continue;
    }
    Error error = std::move(result.error());
    const auto others = std::count_if(results.begin() + static_cast<std::ptrdiff_t>(i) + 1, results.end(),
                                      [](const std::optional<Result<T>>& other) { return !other->has_value(); });
    if (others > 0)
      error.message += "; " + std::to_string(others) + (others == 1 ? " more file" : " more files") + " can't be read";
    return tl::unexpected(std::move(error));
  }
  return values;
}

// Calls read(path) as read_parallel() does, and then use(T&&), which returns a Status, for each result in the order of
// the paths. At most `most` results exist at the same time, so what a result holds, such as memory or an open file,
// doesn't grow with the number of files. After an error it reads no further group. Requires most > 0; with less than
// kMaxReaderThreads, threads are idle.
template <typename T, typename Read, typename Use>
Status read_in_groups(std::span<const std::string> paths, std::size_t most, Read read, Use use) {
  while (!paths.empty()) {
    const auto group = paths.first(std::min(paths.size(), most));
    Result<std::vector<T>> results = read_parallel<T>(group, read);
    if (!results) return tl::unexpected(std::move(results.error()));
    for (T& result : *results)
      if (Status ok = use(std::move(result)); !ok) return ok;
    paths = paths.subspan(group.size());
  }
  return {};
}

}  // namespace disttrain::input
