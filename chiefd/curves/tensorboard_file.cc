// protozero has only headers and is in Debian. With libprotobuf, the chief would need a runtime library and copies of
// TensorFlow's .proto files, although it writes only five fields. A test compares the bytes with those that the Python
// package tensorboard writes.
//
// After a rollback the chief writes a SessionLog START record for the step after the checkpoint. TensorBoard then hides
// the values of that step and of later steps, in this file and in earlier ones; those of the checkpoint's own step stay
// visible. Each new file begins with such a record too. The files are in the checkpoint folder, so a job's curves stay
// with its parameters if somebody moves or copies this folder.
#include "chiefd/curves/tensorboard_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <protozero/pbf_writer.hpp>
#include <span>
#include <utility>

#include "common/daemon/host.h"
#include "transport/wire/checksum.h"

namespace disttrain::chiefd {
namespace {

// These field numbers come from tensorflow/core/util/event.proto and tensorflow/core/framework/summary.proto.
namespace event {
constexpr protozero::pbf_tag_type kWallTime = 1;
constexpr protozero::pbf_tag_type kStep = 2;
constexpr protozero::pbf_tag_type kFileVersion = 3;
constexpr protozero::pbf_tag_type kSummary = 5;
constexpr protozero::pbf_tag_type kSessionLog = 7;
}  // namespace event
namespace session_log {
constexpr protozero::pbf_tag_type kStatus = 1;
constexpr std::int32_t kStart = 1;
}  // namespace session_log
namespace summary {
constexpr protozero::pbf_tag_type kValue = 1;
constexpr protozero::pbf_tag_type kTag = 1;          // of a value
constexpr protozero::pbf_tag_type kSimpleValue = 2;  // of a value
}  // namespace summary

std::uint32_t masked_crc32c(const std::string& bytes) {
  const std::uint32_t crc = wire::crc32c(std::as_bytes(std::span(bytes)));
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

template <typename Number>
std::string little_endian(Number number) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof number; ++i) bytes += static_cast<char>((number >> (8 * i)) & 0xff);
  return bytes;
}

std::string framed(const std::string& record) {
  const std::string length = little_endian(static_cast<std::uint64_t>(record.size()));
  return length + little_endian(masked_crc32c(length)) + record + little_endian(masked_crc32c(record));
}

void add_time(protozero::pbf_writer& to, std::int64_t wall_nanoseconds) {
  to.add_double(event::kWallTime, static_cast<double>(wall_nanoseconds) * 1e-9);
}

tl::unexpected<Error> cannot(const std::string& what, const std::string& path) {
  return fail(ErrorCode::kFailed, "can't " + what + " " + path + ": " + std::strerror(errno));
}

}  // namespace

std::string version_record(std::int64_t wall_nanoseconds) {
  std::string record;
  protozero::pbf_writer writer(record);
  add_time(writer, wall_nanoseconds);
  writer.add_string(event::kFileVersion, "brain.Event:2");
  return framed(record);
}

std::string scalars_record(std::int64_t wall_nanoseconds, std::uint64_t step, const std::vector<Scalar>& scalars) {
  std::string record;
  protozero::pbf_writer writer(record);
  add_time(writer, wall_nanoseconds);
  writer.add_int64(event::kStep, static_cast<std::int64_t>(step));
  {
    protozero::pbf_writer all(writer, event::kSummary);
    for (const Scalar& scalar : scalars) {
      protozero::pbf_writer value(all, summary::kValue);
      value.add_string(summary::kTag, scalar.tag);
      value.add_float(summary::kSimpleValue, static_cast<float>(scalar.value));
    }
  }
  return framed(record);
}

std::string restart_record(std::int64_t wall_nanoseconds, std::uint64_t step) {
  std::string record;
  protozero::pbf_writer writer(record);
  add_time(writer, wall_nanoseconds);
  writer.add_int64(event::kStep, static_cast<std::int64_t>(step));
  {
    protozero::pbf_writer log(writer, event::kSessionLog);
    log.add_enum(session_log::kStatus, session_log::kStart);
  }
  return framed(record);
}

Result<TensorBoardFile> TensorBoardFile::create(const std::string& folder, std::int64_t wall_nanoseconds) {
  if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) return cannot("make the folder", folder);
  // TensorBoard reads only files with "tfevents" in their names, and reads the files of a run in the order of the
  // names.
  const std::string begin = folder + "/events.out.tfevents." + std::to_string(wall_nanoseconds / 1'000'000'000) + "." +
                            daemon::host_name() + "." + std::to_string(::getpid()) + ".";
  int fd = -1;
  std::string path;
  constexpr int kMostOfASecond = 1000;
  for (int number = 0; fd < 0 && number < kMostOfASecond; ++number) {
    path = begin + std::to_string(number);
    fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0 && errno != EEXIST) break;
  }
  if (fd < 0) return cannot("create", path);
  TensorBoardFile file(path, Descriptor(fd));
  if (Status written = file.append(version_record(wall_nanoseconds)); !written) {
    ::unlink(path.c_str());
    return tl::unexpected(written.error());
  }
  return file;
}

Status TensorBoardFile::append(const std::string& record) {
  ssize_t written = 0;
  do written = ::write(fd_.get(), record.data(), record.size());
  while (written < 0 && errno == EINTR);
  if (written < 0) return cannot("write to", path_);
  if (static_cast<std::size_t>(written) < record.size())
    return fail(ErrorCode::kFailed, "can't write to " + path_ + ": the disk is full");
  return {};
}

bool TensorBoardFile::is_there() const {
  return ::access(path_.c_str(), F_OK) == 0;
}

}  // namespace disttrain::chiefd
