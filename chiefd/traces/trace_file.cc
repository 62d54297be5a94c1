#include "chiefd/traces/trace_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "chiefd/traces/trace_json.h"
#include "common/daemon/clock.h"
#include "common/daemon/threads.h"
#include "common/os/descriptor.h"

namespace disttrain::chiefd {
namespace {

tl::unexpected<Error> cannot_keep(const std::string& what, const std::string& path) {
  return fail(ErrorCode::kFailed, "can't " + what + " " + path + ": " + std::strerror(errno));
}

Status write_all(int fd, const std::string& path, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return cannot_keep("write to", path);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Status write_file(const TraceBook& book, const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file.get() < 0) return cannot_keep("create", path);
  if (Status ok = write_trace(book, [&](std::string_view text) { return write_all(file.get(), path, text); }); !ok)
    return ok;
  if (::fsync(file.get()) != 0) return cannot_keep("sync", path);
  return {};
}

}  // namespace

Result<std::string> write_trace_file(const TraceBook& book, std::int64_t wall_seconds) {
  if (::mkdir(book.folder.c_str(), 0777) != 0 && errno != EEXIST) return cannot_keep("make the folder", book.folder);
  const std::string path = book.folder + "/trace-" + std::to_string(wall_seconds) + "-steps-" +
                           std::to_string(book.steps[0]) + "-" + std::to_string(book.steps[1]) + ".json";
  const std::string temporary = path + ".tmp";
  Status written = write_file(book, temporary);
  if (written && ::rename(temporary.c_str(), path.c_str()) != 0) written = cannot_keep("rename", temporary);
  if (written) return path;
  ::unlink(temporary.c_str());
  return tl::unexpected(written.error());
}

TraceWriter::TraceWriter(Done done) : done_(std::move(done)) {}

TraceWriter::~TraceWriter() {
  for (Lane& lane : lanes_) lane.thread.join();
}

void TraceWriter::reap() {
  lanes_.remove_if([](Lane& lane) {
    if (!lane.is_over) return false;
    lane.thread.join();
    return true;
  });
}

void TraceWriter::write(TraceBook book) {
  reap();
  if (lanes_.size() >= kMostTraces)
    return done_(book, fail(ErrorCode::kFailed, std::to_string(kMostTraces) +
                                                    " earlier traces hang in their file systems: check these, and "
                                                    "restart the chief"));
  Lane& lane = lanes_.emplace_back();
  lane.thread = std::thread([this, &lane, own = std::move(book)] {
    daemon::name_thread("trace");
    done_(own, write_trace_file(own, daemon::wall_nanoseconds() / 1'000'000'000));
    lane.is_over = true;
  });
}

}  // namespace disttrain::chiefd
