// These tests write and read the values of [data.columns] that a checkpoint keeps.
#include "common/checkpoint/kept_columns.h"

#include <gtest/gtest.h>

#include "tests/common/checkpoint/memory_files.h"

namespace disttrain::checkpoint {
namespace {

std::vector<KeptColumn> columns() {
  return {{.name = "age", .words = {}, .mean = 38.25, .deviation = 10.0},
          {.name = "country", .words = {"", "de", "\xff\x00 raw"}},
          {.name = "clicks", .words = {}, .are_classes = false, .smallest = -1.5, .largest = 1.0 / 3.0}};
}

TEST(KeptColumns, ComeBackAsTheyWereAlsoWordsOfAnyBytes) {
  const auto decoded = decode_columns(encode_columns(columns()), "columns.cbor");
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(*decoded, columns());
}

// nlohmann's decoder recurses into the first two, and throws for the third.
TEST(KeptColumns, DeepOrHugeArraysAreRefused) {
  const std::string huge("\x9b\x7f\xff\xff\xff\xff\xff\xff\xff", 9);
  for (const std::string& bytes : {std::string(4'000'000, '\x81'), std::string(4'000'000, '\x7f'), huge})
    EXPECT_FALSE(decode_columns(bytes, "/c/columns.cbor"));
}

TEST(KeptColumns, DamagedBytesAreRefused) {
  const std::string bytes = encode_columns(columns());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto decoded = decode_columns(bytes.substr(0, size), "/c/columns.cbor");
    ASSERT_FALSE(decoded) << size;
    EXPECT_NE(decoded.error().message.find("/c/columns.cbor"), std::string::npos);
  }
  std::vector<KeptColumn> wrong = columns();
  wrong[0].deviation = 0.0;
  EXPECT_FALSE(decode_columns(encode_columns(wrong), "x"));
  for (std::size_t i = 0; i < bytes.size(); ++i)
    for (const char c : {'\x00', '\x7f', '\x9f', '\xff'}) {
      std::string flipped = bytes;
      flipped[i] = c;
      (void)decode_columns(flipped, "x");  // must not crash
    }
}

TEST(KeptColumns, OtherWordsDifferAndMeansMayMoveALittle) {
  EXPECT_EQ(differing_column(columns(), columns()), std::nullopt);
  std::vector<KeptColumn> found = columns();
  found[0].mean += 0.09;
  found[0].deviation -= 0.09;
  EXPECT_EQ(differing_column(columns(), found), std::nullopt);
  found[0].mean += 0.02;
  EXPECT_EQ(differing_column(columns(), found), "age");
  found = columns();
  found[0].deviation = 11.0;
  EXPECT_EQ(differing_column(columns(), found), "age");
  found = columns();
  found[1].words.push_back("fr");
  EXPECT_EQ(differing_column(columns(), found), "country");
  found = columns();
  found[2].are_classes = true;
  EXPECT_EQ(differing_column(columns(), found), "clicks");
  found.pop_back();
  EXPECT_EQ(differing_column(columns(), found), "clicks");
  EXPECT_EQ(differing_column(found, columns()), "clicks");
}

TEST(KeptColumns, FileIsVerified) {
  MemoryFiles files;
  ASSERT_TRUE(files.make_directory("/c"));
  const auto entry = keep_columns(files, "/c", encode_columns(columns()));
  ASSERT_TRUE(entry) << entry.error().message;
  OpenCheckpoint open;
  open.path = "/c";
  EXPECT_EQ(*kept_columns(files, open), std::nullopt) << "an older checkpoint lists no such file";
  open.manifest.files = {*entry, *entry};
  open.manifest.files[0].name = "shard";
  open.manifest.shards.resize(1);
  const auto kept = kept_columns(files, open);
  ASSERT_TRUE(kept.has_value()) << kept.error().message;
  EXPECT_EQ(**kept, columns());
  std::string other = encode_columns(columns());
  other.back() ^= 1;
  ASSERT_TRUE(files.remove_file("/c/columns.cbor"));
  ASSERT_TRUE(write_text(files, "/c/columns.cbor", other));
  EXPECT_FALSE(kept_columns(files, open).has_value());
}

}  // namespace
}  // namespace disttrain::checkpoint
