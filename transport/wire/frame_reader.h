// Makes frames from a stream of bytes. The caller does the I/O: the reader says into which memory the caller must read,
// and the caller says how many bytes it has read. Payloads are read straight into their landing. Only a few KiB of a
// payload that arrive together with the header are copied.
//
//   const auto [first, second] = reader.room();      // read into first and then second, for example with readv
//   reader.received(n);
//   for (;;) {
//     Result<FrameReader::Event> event = reader.next();
//     if (!event) close(event.error());
//     if (*event == Event::kNeedBytes) break;
//     if (*event == Event::kNeedLanding) reader.land(where_it_belongs(reader.header(), reader.control()));
//     if (*event == Event::kFrame) use(reader.header(), reader.control(), reader.payload());
//   }
//
// Don't use the reader any more after an error or after kForeignHello. Use it on one thread only.
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
    kNeedBytes,    // the caller must read more bytes into room() and call received()
    kNeedLanding,  // header() and control() are verified; the caller must call land() next
    kFrame,        // a frame is whole; header(), control() and payload() are valid until the next call of next()
    // Only if the reader takes places: the frame has a PayloadPlace. header(), control() and place() are verified; the
    // caller must call take_place() next.
    kPlace,
    kForeignHello,  // a hello of another version; only version and type of header() are valid
  };

  struct Room {
    std::span<std::byte> first;
    std::span<std::byte> second;  // may be empty
  };

  FrameReader();

  // Demands that the next frame be a hello without a payload. For any other frame, next() returns an error as soon as
  // the header has arrived.
  void expect_hello() { expects_hello_ = true; }

  // From now on frames may have a PayloadPlace, because both ends share memory. Otherwise such a frame is malformed.
  void take_places() { takes_places_ = true; }

  // The memory into which the caller must read. At most one of the two parts is empty. The caller may read fewer bytes
  // than fit, and passes their number to received().
  Room room();
  void received(std::size_t bytes);

  // The next event that results from the bytes so far. kData: the bytes are malformed. kConfig: the frame is of another
  // version.
  Result<Event> next();

  const FrameHeader& header() const { return header_; }
  std::span<const std::byte> control() const;
  std::span<const std::byte> payload() const { return landing_; }

  // Sets the memory for the payload. It must be exactly header().payload_bytes long, and valid until the frame is whole
  // or the reader is destroyed. Call it only after kNeedLanding. That event doesn't come for a frame without a payload.
  // It doesn't come for a frame of an unknown type either; the payload of such a frame goes to the reader's own memory.
  void land(std::span<std::byte> landing);

  // Only after kPlace.
  const PayloadPlace& place() const { return place_; }
  // Goes on after kPlace. `payload` is the frame's payload if it lies elsewhere, and else ignored.
  void take_place(std::span<std::byte> payload);

  // Returns true if a frame has begun and isn't whole yet.
  bool in_frame() const { return state_ != State::kHeader || begin_ != end_; }

 private:
  enum class State { kHeader, kControl, kPlace, kBeforeLanding, kLanding, kPayload, kElsewhere, kWhole };

  // How many bytes one read may take beyond the end of the current frame. So one read can bring several small frames.
  // Of a large frame, at most this many bytes have to be copied to their landing.
  static constexpr std::size_t kReadAhead = 4096;

  std::span<const std::byte> staged() const { return std::span(staging_).subspan(begin_, end_ - begin_); }
  void make_room(std::size_t bytes);
  void take_staged_payload();
  void landed(std::size_t bytes);

  std::vector<std::byte> staging_;  // the bytes in [begin_, end_) have arrived and aren't used yet
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  State state_ = State::kHeader;
  FrameHeader header_;
  std::size_t control_at_ = 0;  // position of the control part in staging_, where it stays while it is in use
  std::span<std::byte> landing_;
  std::size_t landed_ = 0;
  std::uint32_t checksum_ = 0;          // the checksum of the payload bytes that have arrived
  std::vector<std::byte> own_landing_;  // the payload of a frame of unknown type
  PayloadPlace place_;
  bool expects_hello_ = false;
  bool takes_places_ = false;
};

}  // namespace disttrain::wire
