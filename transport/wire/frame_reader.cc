#include "transport/wire/frame_reader.h"

#include <algorithm>
#include <cstring>

#include "common/check.h"
#include "transport/wire/checksum.h"
#include "transport/wire/frame_header.h"

namespace disttrain::wire {

FrameReader::FrameReader() : staging_(kHeaderBytes + 2 * kReadAhead) {}

std::span<const std::byte> FrameReader::control() const {
  const std::size_t before = header_.has_place ? kPlaceBytes : 0;
  return std::span(staging_).subspan(control_at_ + before, header_.control_bytes - before);
}

FrameReader::Room FrameReader::room() {
  const std::span<std::byte> free = std::span(staging_).subspan(end_);
  if (state_ == State::kPayload) return {landing_.subspan(landed_), free.first(std::min(free.size(), kReadAhead))};
  // Leaves the last kReadAhead free bytes unused, because a payload needs them later: each read of a payload asks for
  // more bytes than the payload has, and puts the rest into these bytes. If a read gets fewer bytes than it asked for,
  // the caller knows that the socket is empty, and needn't read again.
  return {free.first(free.size() - kReadAhead), {}};
}

void FrameReader::received(std::size_t bytes) {
  if (state_ == State::kPayload) {
    const std::size_t direct = std::min(bytes, landing_.size() - landed_);
    landed(direct);
    bytes -= direct;
  }
  DISTTRAIN_CHECK_LE(bytes, staging_.size() - end_);
  end_ += bytes;
}

// Makes room in staging_ for `bytes` from begin_ on, plus twice kReadAhead. May move the bytes that are in staging_.
void FrameReader::make_room(std::size_t bytes) {
  if (begin_ == end_) begin_ = end_ = 0;
  if (begin_ + bytes + 2 * kReadAhead <= staging_.size()) return;
  std::memmove(staging_.data(), staging_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  if (staging_.size() < bytes + 2 * kReadAhead) staging_.resize(bytes + 2 * kReadAhead);
}

void FrameReader::landed(std::size_t bytes) {
  if (header_.checksum_kind == ChecksumKind::kCrc32c)  // computes the checksum now, while the bytes are in the cache
    checksum_ = crc32c(landing_.subspan(landed_, bytes), checksum_);
  landed_ += bytes;
}

void FrameReader::take_staged_payload() {
  const std::size_t n = std::min(end_ - begin_, landing_.size() - landed_);
  if (n == 0) return;
  std::memcpy(landing_.data() + landed_, staging_.data() + begin_, n);
  begin_ += n;
  landed(n);
}

void FrameReader::land(std::span<std::byte> landing) {
  DISTTRAIN_CHECK(state_ == State::kLanding);
  DISTTRAIN_CHECK_EQ(landing.size(), header_.payload_bytes);
  landing_ = landing;
  state_ = State::kPayload;
}

void FrameReader::take_place(std::span<std::byte> payload) {
  DISTTRAIN_CHECK(state_ == State::kPlace);
  if (place_.kind == PayloadPlace::Kind::kInFrame) {
    state_ = State::kBeforeLanding;
    return;
  }
  DISTTRAIN_CHECK_EQ(payload.size(), header_.payload_bytes);
  landing_ = payload;
  state_ = State::kElsewhere;
}

Result<FrameReader::Event> FrameReader::next() {
  for (;;) {
    switch (state_) {
      case State::kHeader: {
        const auto bytes = staged();
        if (bytes.size() >= kLastingHeaderBytes) {
          if (const auto version = foreign_hello_version(bytes.first<kLastingHeaderBytes>()); version != 0) {
            header_ = FrameHeader{};
            header_.version = version;
            header_.type = FrameType::kHello;
            return Event::kForeignHello;
          }
        }
        if (bytes.size() < kHeaderBytes) {
          make_room(kHeaderBytes);
          return Event::kNeedBytes;
        }
        Result<FrameHeader> header = decode_header(bytes.first<kHeaderBytes>());
        if (!header) return tl::unexpected(header.error());
        if (expects_hello_ && (header->type != FrameType::kHello || header->payload_bytes != 0))
          return fail(ErrorCode::kData, "the peer sent a frame of type " +
                                            std::to_string(static_cast<unsigned>(header->type)) +
                                            " with a payload of " + std::to_string(header->payload_bytes) +
                                            " bytes; expected a hello, without a payload");
        if (header->has_place && !takes_places_)
          return fail(ErrorCode::kData, "the peer sent a frame whose payload is in shared memory, but shares none");
        expects_hello_ = false;
        header_ = *header;
        state_ = State::kControl;
        break;
      }
      case State::kControl: {
        const std::size_t whole = kHeaderBytes + header_.control_bytes;
        if (end_ - begin_ < whole) {
          make_room(whole);
          return Event::kNeedBytes;
        }
        const auto bytes = staged();
        const auto control = bytes.subspan(kHeaderBytes, header_.control_bytes);
        if (Status good = verify_header(bytes.first<kHeaderBytes>(), control); !good)
          return tl::unexpected(good.error());
        control_at_ = begin_ + kHeaderBytes;
        begin_ += whole;
        landing_ = {};
        landed_ = 0;
        checksum_ = 0;
        state_ = State::kBeforeLanding;
        if (!header_.has_place) break;
        const Result<PayloadPlace> place = decode_place(control.first<kPlaceBytes>());
        if (!place) return tl::unexpected(place.error());
        place_ = *place;
        state_ = State::kPlace;
        return Event::kPlace;
      }
      case State::kPlace:
        return Event::kPlace;
      case State::kBeforeLanding:
        state_ = State::kLanding;
        if (header_.payload_bytes != 0 && known(header_.type)) return Event::kNeedLanding;
        own_landing_.resize(header_.payload_bytes);
        land(own_landing_);
        break;
      case State::kElsewhere:
        state_ = State::kWhole;
        return Event::kFrame;
      case State::kLanding:
        return Event::kNeedLanding;
      case State::kPayload:
        take_staged_payload();
        if (landed_ < landing_.size()) return Event::kNeedBytes;
        if (header_.checksum_kind == ChecksumKind::kCrc32c && checksum_ != header_.payload_checksum)
          return fail(ErrorCode::kData, "the checksum of a payload is wrong: the payload was damaged on its way");
        state_ = State::kWhole;
        return Event::kFrame;
      case State::kWhole:
        if (!own_landing_.empty()) own_landing_ = {};
        state_ = State::kHeader;
        break;
    }
  }
}

}  // namespace disttrain::wire
