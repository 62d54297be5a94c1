#include "common/bounded_cbor.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace disttrain {
namespace {

std::string nested(const std::string& head, std::size_t depth, const std::string& inner) {
  std::string bytes;
  for (std::size_t i = 0; i < depth; ++i) bytes += head;
  return bytes + inner;
}

TEST(BoundedCbor, DeepBytesAreDiscarded) {
  const std::pair<const char*, std::size_t> heads[] = {{"\x81", 1}, {"\xa1\x61k", 3}, {"\xd9\xd9\xf7", 3}, {"\x9f", 1}};
  for (const auto& [head, size] : heads) {
    const std::string text(head, size);
    EXPECT_TRUE(parse_bounded_cbor(nested(text, kMaxCborNesting + 1, "\x01")).is_discarded()) << size;
    EXPECT_TRUE(parse_bounded_cbor(nested(text, 4'000'000, "\x01")).is_discarded()) << size;
  }
  EXPECT_FALSE(parse_bounded_cbor(nested("\x81", kMaxCborNesting, "\x01")).is_discarded());
  EXPECT_FALSE(parse_bounded_cbor(nested("\xa1\x61k", kMaxCborNesting, "\x01")).is_discarded());
}

TEST(BoundedCbor, TextsInChunksWhichNestAreDiscarded) {
  for (const char head : {'\x7f', '\x5f'})
    EXPECT_TRUE(parse_bounded_cbor(std::string(4'000'000, head)).is_discarded()) << static_cast<int>(head);
}

TEST(BoundedCbor, LengthsBeyondTheBytesAreDiscarded) {
  for (const char* head : {"\x9b", "\xbb", "\x5b", "\x7b"})
    for (const char* length :
         {"\xff\xff\xff\xff\xff\xff\xff\xff", "\x7f\xff\xff\xff\xff\xff\xff\xff", "\x20\x01\x01\x01\x01\x01\x01\x01"})
      EXPECT_TRUE(parse_bounded_cbor(std::string(head) + length + "\x01").is_discarded());
  EXPECT_TRUE(parse_bounded_cbor("\x83\x01\x01").is_discarded());
  EXPECT_TRUE(parse_bounded_cbor("\xa2\x61k\x01").is_discarded());
}

TEST(BoundedCbor, SiblingsArentNested) {
  std::string bytes = "\x99\x10\x01";  // an array of 4097
  for (int i = 0; i < 4096; ++i) bytes += "\x81\x80";
  bytes += "\xa0";
  EXPECT_EQ(parse_bounded_cbor(bytes).size(), 4097U);
}

// Each empty map is a byte, and takes 80 times its memory.
TEST(BoundedCbor, TooManyValuesAreDiscarded) {
  static_assert(kMaxCborValues == 0x200000);
  EXPECT_EQ(parse_bounded_cbor("\x9a" + std::string("\x00\x1f\xff\xff", 4) + std::string(0x1fffff, '\xa0')).size(),
            kMaxCborValues - 1);
  EXPECT_TRUE(
      parse_bounded_cbor("\x9a" + std::string("\x00\x20\x00\x00", 4) + std::string(0x200000, '\xa0')).is_discarded());
}

TEST(BoundedCbor, ValuesComeBack) {
  const nlohmann::json value = {{"words", {"", "de", "long " + std::string(70'000, 'x')}},
                                {"mean", -1.5},
                                {"count", 1U << 31U},
                                {"is", true},
                                {"none", nullptr},
                                {"list", nlohmann::json::array()}};
  std::string bytes;
  nlohmann::json::to_cbor(value, bytes);
  EXPECT_EQ(parse_bounded_cbor(bytes), value);
  EXPECT_TRUE(parse_bounded_cbor(bytes + '\0').is_discarded());
  for (std::size_t size = 0; size < 64; ++size) EXPECT_TRUE(parse_bounded_cbor(bytes.substr(0, size)).is_discarded());
}

}  // namespace
}  // namespace disttrain
