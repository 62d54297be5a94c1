// Reads frames from a stream of bytes, without I/O: it says where the next bytes go, is told how many came, and returns
// what they make. Payloads are read straight into their landing; only a few KiB that came along with a header are
// moved.
//
//   const auto [first, second] = reader.room();      // read into these two, in this order (readv)
//   reader.received(n);
//   for (;;) {
//     Result<FrameReader::Event> event = reader.next();
//     if (!event) close(event.error());
//     if (*event == Event::kNeedBytes) break;
//     if (*event == Event::kNeedLanding) reader.land(where_it_belongs(reader.header(), reader.control()));
//     if (*event == Event::kFrame) use(reader.header(), reader.control(), reader.payload());
//   }
//
// After an error or a foreign hello, don't use the reader any more. One loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/result.h"
#include "transport/wire/frame.h"

namespace disttrain::wire {

class FrameReader {
 public:
  enum class Event {
    kNeedBytes,     // read into room() and call received()
    kNeedLanding,   // header() and control() are verified; call land() before anything else
    kFrame,         // header(), control() and payload() stay valid until next() is called again
    kForeignHello,  // a hello of another version: header() has version and type; nothing more can be read
  };

  struct Room {
    std::span<std::byte> first;
    std::span<std::byte> second;  // may be empty
  };

  FrameReader();

  // The next frame must be a hello without a payload: any other type is an error as soon as its header is there.
  void expect_hello() { expects_hello_ = true; }

  // Where bytes go; never both empty. received() may be given less than this room.
  Room room();
  void received(std::size_t bytes);

  // The next event from the bytes so far. kData: malformed bytes. kConfig: another version.
  Result<Event> next();

  const FrameHeader& header() const { return header_; }
  std::span<const std::byte> control() const;
  std::span<const std::byte> payload() const { return landing_; }

  // Sets where the payload goes: exactly header().payload_bytes, valid until the frame is whole or the reader is
  // dropped. Not called for frames without a payload or of an unknown type; the latter's payload goes to the reader's
  // own memory until the frame ends.
  void land(std::span<std::byte> landing);

  // Whether a frame has begun and isn't whole.
  bool in_frame() const { return state_ != State::kHeader || begin_ != end_; }

 private:
  enum class State { kHeader, kControl, kLanding, kPayload, kWhole };

  // Bytes read beyond what the current frame needs. So several small frames come in one read, and of a large frame at
  // most this many bytes are moved twice.
  static constexpr std::size_t kReadAhead = 4096;

  std::span<const std::byte> staged() const { return std::span(staging_).subspan(begin_, end_ - begin_); }
  void make_room(std::size_t bytes);
  void take_staged_payload();
  void landed(std::size_t bytes);

  std::vector<std::byte> staging_;  // [begin_, end_) has arrived and isn't consumed
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  State state_ = State::kHeader;
  FrameHeader header_;
  std::size_t control_at_ = 0;  // position in staging_, which isn't moved while a frame's control part lies in it
  std::span<std::byte> landing_;
  std::size_t landed_ = 0;
  std::uint32_t checksum_ = 0;          // of the bytes that have landed
  std::vector<std::byte> own_landing_;  // of a frame of unknown type
  bool expects_hello_ = false;
};

}  // namespace disttrain::wire
