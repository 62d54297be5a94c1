// The bytes of a frame's header. Also frames from streams that arrive in pieces of any size, or that are malformed.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string_view>

#include "transport/wire/checksum.h"
#include "transport/wire/frame_header.h"
#include "transport/wire/frame_reader.h"

namespace disttrain::wire {
namespace {

using Event = FrameReader::Event;
using Stream = std::vector<std::byte>;

Stream bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

void append(Stream& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

Stream frame_bytes(const FrameHeader& header, const Stream& control, const Stream& payload,
                   ChecksumKind kind = ChecksumKind::kCrc32c) {
  Stream stream;
  append(stream, encode_header(header, control, payload, kind));
  append(stream, control);
  append(stream, payload);
  return stream;
}

FrameHeader header_of(FrameType type, std::uint64_t sequence = 0) {
  FrameHeader header;
  header.type = type;
  header.sequence = Sequence(sequence);
  return header;
}

// A reader that gets a stream, and the frames that it has returned.
struct Fed {
  struct Frame {
    FrameHeader header;
    Stream control, payload;
  };
  FrameReader reader;
  std::vector<Frame> frames;
  std::vector<Stream> landings;
  std::string error;
  bool foreign = false;

  // Gives the reader at most `piece` bytes at a time, as a socket would.
  void feed(std::span<const std::byte> stream, std::size_t piece = 1 << 20) {
    while (!stream.empty() && error.empty() && !foreign) {
      const auto [first, second] = reader.room();
      ASSERT_FALSE(first.empty() && second.empty());
      const std::size_t n = std::min({stream.size(), piece, first.size() + second.size()});
      const std::size_t n1 = std::min(n, first.size());
      std::copy_n(stream.begin(), n1, first.begin());
      std::copy_n(stream.begin() + static_cast<std::ptrdiff_t>(n1), n - n1, second.begin());
      reader.received(n);
      stream = stream.subspan(n);
      drain();
    }
  }

  void drain() {
    for (;;) {
      const auto event = reader.next();
      if (!event) {
        error = event.error().message;
        return;
      }
      if (*event == Event::kNeedBytes) return;
      if (*event == Event::kForeignHello) {
        foreign = true;
        return;
      }
      if (*event == Event::kNeedLanding) {
        landings.emplace_back(reader.header().payload_bytes);
        reader.land(landings.back());
      } else {
        frames.push_back({reader.header(),
                          {reader.control().begin(), reader.control().end()},
                          {reader.payload().begin(), reader.payload().end()}});
      }
    }
  }
};

TEST(Checksum, IsThatOfRfc3720AndCanBeContinued) {
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c(bytes_of("6789"), crc32c(bytes_of("12345"))), 0xe3069283u);
  EXPECT_EQ(crc32c(Stream(32)), 0x8a9136aau);  // B.4: 32 bytes of zeroes
  EXPECT_EQ(crc32c({}), 0u);
}

TEST(FrameHeader, HasTheBytesOfTheBook) {
  FrameHeader header;
  header.type = FrameType::kPush;
  header.job = JobId(0x01020304);
  header.generation = Generation(0x1112131415161718);
  header.sequence = Sequence(0x2122232425262728);
  const HeaderBytes bytes = encode_header(header, Stream(0x0304), Stream(0x010203), ChecksumKind::kCrc32c);
  const unsigned char expected[44] = {'D',  'T',  'R',  'N',  1,    0,    32,   0,    4,    3,    2,
                                      1,    0x04, 0x03, 0,    0,    0x18, 0x17, 0x16, 0x15, 0x14, 0x13,
                                      0x12, 0x11, 0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21, 0x03,
                                      0x02, 0x01, 0,    0,    0,    0,    0,    0};
  EXPECT_TRUE(std::equal(expected, expected + 40, reinterpret_cast<const unsigned char*>(bytes.data())));
  EXPECT_EQ(bytes[44], std::byte{1});
  EXPECT_TRUE(std::all_of(bytes.begin() + 45, bytes.begin() + 60, [](std::byte b) { return b == std::byte{0}; }));
}

TEST(FrameHeader, AllOfItIsUnderItsChecksum) {
  const Stream control = bytes_of("control");
  const HeaderBytes good = encode_header(header_of(FrameType::kPush), control, {}, ChecksumKind::kNone);
  ASSERT_TRUE(verify_header(good, control));
  for (std::size_t i = 0; i < good.size(); ++i) {
    HeaderBytes bad = good;
    bad[i] ^= std::byte{0x10};
    EXPECT_FALSE(verify_header(bad, control)) << i;
  }
  EXPECT_FALSE(verify_header(good, bytes_of("contrOl")));
}

TEST(FrameReader, YieldsTheSameFramesHoweverTheBytesCome) {
  std::mt19937 random(7);
  Stream stream;
  std::vector<std::pair<Stream, Stream>> parts;
  for (std::uint64_t i = 0; i < 60; ++i) {
    Stream control(random() % (i % 7 == 0 ? kMaxControlBytes + 1 : 200));
    Stream payload(i % 3 == 0 ? 0 : random() % (i % 5 == 0 ? 300'000 : 9'000));
    for (auto* part : {&control, &payload})
      for (std::byte& b : *part) b = static_cast<std::byte>(random());
    append(stream, frame_bytes(header_of(i % 4 == 0 ? FrameType(999) : FrameType::kPush, i), control, payload,
                               i % 2 == 0 ? ChecksumKind::kCrc32c : ChecksumKind::kNone));
    parts.emplace_back(std::move(control), std::move(payload));
  }
  for (const std::size_t piece :
       {std::size_t{7}, std::size_t{64}, std::size_t{4096}, std::size_t{5000}, stream.size()}) {
    Fed fed;
    fed.feed(stream, piece);
    ASSERT_EQ(fed.error, "");
    ASSERT_EQ(fed.frames.size(), parts.size()) << piece;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      EXPECT_EQ(fed.frames[i].header.sequence.value, i);
      EXPECT_EQ(fed.frames[i].control, parts[i].first) << i << " in pieces of " << piece;
      EXPECT_EQ(fed.frames[i].payload, parts[i].second) << i << " in pieces of " << piece;
    }
    EXPECT_FALSE(fed.reader.in_frame());
  }
}

TEST(FrameReader, SaysThatAFrameIsUnderWay) {
  Fed fed;
  EXPECT_FALSE(fed.reader.in_frame());
  const Stream stream = frame_bytes(header_of(FrameType::kPush), {}, Stream(10'000));
  fed.feed(std::span(stream).first(20));
  EXPECT_TRUE(fed.reader.in_frame());
  fed.feed(std::span(stream).subspan(20, 9000));
  EXPECT_TRUE(fed.reader.in_frame());
}

// Overwrites a header's field and corrects the checksum, as a malicious peer would.
Stream with_field(std::size_t at, std::uint64_t value, std::size_t size, FrameType type = FrameType::kPush) {
  Stream stream = frame_bytes(header_of(type), {}, {});
  for (std::size_t i = 0; i < size; ++i) stream[at + i] = static_cast<std::byte>(value >> (8 * i));
  const std::uint32_t sum = crc32c(std::span(stream).first(60));
  for (std::size_t i = 0; i < 4; ++i) stream[60 + i] = static_cast<std::byte>(sum >> (8 * i));
  return stream;
}

TEST(FrameReader, RefusesSizesBeforeAnythingIsAskedFor) {
  for (const auto& [at, value, size, type] :
       {std::tuple{12, std::uint64_t{kMaxControlBytes} + 1, 4, FrameType::kPush},
        std::tuple{32, kMaxPayloadBytes + 1, 8, FrameType::kPush},
        std::tuple{32, ~std::uint64_t{0}, 8, FrameType::kBlob}, std::tuple{32, kMaxPayloadBytes + 1, 8, FrameType(999)},
        std::tuple{32, kMaxBlobBytes + 1, 8, FrameType::kBlob}}) {
    Fed fed;
    fed.feed(with_field(static_cast<std::size_t>(at), value, static_cast<std::size_t>(size), type));
    EXPECT_NE(fed.error.find("are allowed"), std::string::npos) << fed.error;
    EXPECT_TRUE(fed.landings.empty());
  }
}

TEST(FrameReader, RefusesWhatIsNoFrame) {
  Fed random, kind, sum;
  random.feed(bytes_of(std::string(200, 'x')));
  EXPECT_NE(random.error.find("doesn't begin with \"DTRN\""), std::string::npos) << random.error;
  kind.feed(with_field(44, 2, 1));
  EXPECT_NE(kind.error.find("checksum kind 2"), std::string::npos) << kind.error;
  Stream damaged = frame_bytes(header_of(FrameType::kPush), bytes_of("control"), {});
  damaged[66] ^= std::byte{1};
  sum.feed(damaged);
  EXPECT_NE(sum.error.find("checksum of its header is wrong"), std::string::npos) << sum.error;
}

TEST(FrameReader, RefusesADamagedPayload) {
  Stream damaged = frame_bytes(header_of(FrameType::kPush), {}, Stream(100'000));
  damaged[64 + 77'777] ^= std::byte{1};
  Fed fed;
  fed.feed(damaged, 8000);
  EXPECT_NE(fed.error.find("checksum of a payload is wrong"), std::string::npos) << fed.error;
  EXPECT_TRUE(fed.frames.empty());
}

TEST(FrameReader, AnotherVersionIsAnErrorButOfAHelloItsNumberIsTold) {
  Fed push;
  push.feed(with_field(4, 2, 2));
  EXPECT_NE(push.error.find("speaks protocol version 2, this program 1"), std::string::npos) << push.error;
  Fed hello;
  const Stream stream = with_field(4, 2, 2, FrameType::kHello);
  hello.feed(std::span(stream).first(16));
  EXPECT_TRUE(hello.foreign);
  EXPECT_EQ(hello.reader.header().version, 2);
}

TEST(FrameReader, AnyDamageToAStreamIsAnErrorOrGoodFramesNeverACrash) {
  std::mt19937 random(11);
  Stream stream;
  for (std::uint64_t i = 0; i < 5; ++i)
    append(stream, frame_bytes(header_of(FrameType::kPush, i), Stream(100), Stream(3000)));
  for (int round = 0; round < 3000; ++round) {
    Stream bad = stream;
    for (unsigned flips = 1 + random() % 4; flips > 0; --flips)
      bad[random() % bad.size()] ^= static_cast<std::byte>(1u << (random() % 8));
    bad.resize(random() % bad.size());
    Fed fed;
    fed.feed(bad, 1 + random() % 5000);
    EXPECT_LE(fed.frames.size(), 5u);
    for (std::size_t i = 0; i < fed.frames.size(); ++i) EXPECT_EQ(fed.frames[i].payload, Stream(3000));
  }
}

}  // namespace
}  // namespace disttrain::wire
