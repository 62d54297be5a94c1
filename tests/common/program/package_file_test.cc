#include "common/program/package_file.h"

#include <gtest/gtest.h>

#include <span>

#include "common/random.h"
#include "tests/common/checkpoint/memory_files.h"
#include "tests/common/program/packages.h"

namespace disttrain::program {
namespace {

class PackageFileTest : public testing::Test {
 protected:
  PackageFileTest() { EXPECT_TRUE(files_.create("/p")); }

  Result<PackageFile> open(const std::string& content) {
    const auto bytes = std::as_bytes(std::span(content));
    files_.content("/p").assign(bytes.begin(), bytes.end());
    return PackageFile::open(files_, "/p");
  }

  checkpoint::MemoryFiles files_;
};

const test::Members kMembers = {{"p/first", "one"}, {"p/folder/second", std::string(3'000'000, 'x')}, {"third", ""}};

TEST_F(PackageFileTest, ReadsMembersByTheEndOfTheirNames) {
  Result<PackageFile> package = open(test::zip_of(kMembers));
  ASSERT_TRUE(package) << package.error().message;
  EXPECT_EQ(*package->read(*package->find("first"), 100), "one");
  EXPECT_EQ(*package->read(*package->find("folder/second"), 3'000'000), std::string(3'000'000, 'x'));
  EXPECT_EQ(*package->read(*package->find("third"), 0), "");
  EXPECT_EQ(package->find("irst"), nullptr);
  const Result<std::string> large = package->read(*package->find("second"), 2'999'999);
  ASSERT_FALSE(large);
  EXPECT_NE(large.error().message.find("has 3000000 bytes; expected at most 2999999"), std::string::npos);
}

TEST_F(PackageFileTest, ReadsAFileWithACommentAndZip64) {
  std::string file = test::zip_of({{"only", "content"}});
  // Moves the places of the directory and of the member to the fields for zip64.
  const std::size_t end = file.size() - 22;
  std::string end_record = file.substr(end);
  file.resize(end);
  std::uint32_t begin = 0;
  std::memcpy(&begin, end_record.data() + 16, sizeof(begin));
  std::string field("\x01\x00\x08\x00", 4);  // the field for zip64 with 8 bytes
  field += std::string(8, '\0');             // the member's local header begins at byte 0
  file[begin + 30] = static_cast<char>(field.size());
  for (int i = 0; i < 4; ++i) file[begin + 42 + static_cast<std::size_t>(i)] = '\xFF';
  file += field;
  const std::uint64_t directory_bytes = file.size() - begin;
  const std::uint64_t end64 = file.size();
  const auto number = [](std::uint64_t value, std::size_t bytes) {
    return std::string(reinterpret_cast<const char*>(&value), bytes);
  };
  file += number(0x06064b50, 4) + number(44, 8) + number(0, 12) + number(1, 8) + number(1, 8) +
          number(directory_bytes, 8) + number(begin, 8);
  file += number(0x07064b50, 4) + number(0, 4) + number(end64, 8) + number(1, 4);
  for (std::size_t i = 12; i < 20; ++i) end_record[i] = '\xFF';
  end_record[20] = 5;
  file += end_record + "hello";
  Result<PackageFile> package = open(file);
  ASSERT_TRUE(package) << package.error().message;
  EXPECT_EQ(*package->read(*package->find("only"), 100), "content");
}

TEST_F(PackageFileTest, CompressedMemberIsAnErrorWhenRead) {
  std::string file = test::zip_of({{"only", "content"}});
  const std::size_t directory = file.find("PK\x01\x02");
  file[directory + 10] = 8;
  Result<PackageFile> package = open(file);
  ASSERT_TRUE(package) << package.error().message;
  const Result<std::string> read = package->read(*package->find("only"), 100);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("member only is compressed"), std::string::npos);
}

// A zip file with one compressed member "only".
std::string deflated(const std::string& content) {
  std::string packed(content.size() + 100, '\0');
  z_stream stream = {};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  std::string file = test::zip_of({{"only", packed}});
  const auto put = [&file](std::size_t at, std::uint64_t number, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) file[at + i] = static_cast<char>(number >> (8 * i));
  };
  const auto checksum = crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size()));
  const std::size_t directory = file.find("PK\x01\x02");
  put(directory + 10, 8, 2);
  put(directory + 16, checksum, 4);
  put(directory + 24, content.size(), 4);
  return file;
}

TEST_F(PackageFileTest, CompressedMembersCanBeUnpackedWithinABound) {
  const std::string content(3'000'000, 'c');
  Result<PackageFile> package = open(deflated(content));
  ASSERT_TRUE(package) << package.error().message;
  const Member& member = *package->find("only");
  EXPECT_EQ(package->unpack(member, content.size()), content);
  const Result<std::string> refused = package->unpack(member, content.size() - 1);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("member only has 3000000 bytes; expected at most 2999999"), std::string::npos);
  package = open(test::zip_of({{"only", "stored"}}));
  EXPECT_EQ(package->unpack(*package->find("only"), 100), "stored");
}

// zlib has taken all of the compressed bytes when its output is full, and holds the rest of the content.
TEST_F(PackageFileTest, CompressedMembersOfAnyLengthCanBeUnpacked) {
  constexpr std::size_t kOutputBytes = 1 << 20;
  for (std::size_t more = 0; more <= 600; more += 7) {
    const std::string content(kOutputBytes + more, 'c');
    Result<PackageFile> package = open(deflated(content));
    ASSERT_TRUE(package) << package.error().message;
    const Result<std::string> unpacked = package->unpack(*package->find("only"), content.size());
    ASSERT_TRUE(unpacked) << more << ": " << unpacked.error().message;
    EXPECT_EQ(*unpacked, content);
    EXPECT_TRUE(package->verify(*package->find("only")));
  }
}

// To verify each of a thousand members that are the same bytes takes a thousand times as long as the file is large.
TEST_F(PackageFileTest, MembersThatShareBytesAreAnError) {
  std::string file = test::zip_of({{"a", "same"}, {"b", "same"}});
  const std::size_t second = file.find("PK\x01\x02", file.find("PK\x01\x02") + 4);
  std::memset(file.data() + second + 42, 0, 4);  // the place of the first member
  const Result<PackageFile> package = open(file);
  ASSERT_FALSE(package);
  EXPECT_NE(package.error().message.find("two members share the byte 31"), std::string::npos)
      << package.error().message;
}

TEST_F(PackageFileTest, DamageOfACompressedMemberIsFound) {
  const std::string text =
      "the code of a module, with numbers such as 3.25 and 17, and again 3.25 and 17 and 17 and 17";
  const std::string whole = deflated(text);
  Result<PackageFile> package = open(whole);
  ASSERT_TRUE(package) << package.error().message;
  EXPECT_TRUE(package->verify(*package->find("only")));
  const std::size_t begin = whole.find("only") + 4;
  const std::size_t end = whole.find("PK\x01\x02");
  for (std::size_t at = begin; at < end; ++at)
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ (1U << bit));
      Result<PackageFile> opened = open(damaged);
      ASSERT_TRUE(opened);
      // The last byte has bits that mean nothing.
      EXPECT_TRUE(!opened->verify(*opened->find("only")) || at == end - 1) << at << " " << bit;
    }
}

TEST_F(PackageFileTest, DamagedContentHasAWrongChecksum) {
  std::string file = test::zip_of({{"only", "content"}});
  file[file.find("content")] = 'k';
  Result<PackageFile> package = open(file);
  ASSERT_TRUE(package);
  const Result<std::string> read = package->read(*package->find("only"), 100);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("member only has a wrong checksum"), std::string::npos);
}

TEST_F(PackageFileTest, ReadingBeyondAMemberNamesFileAndMember) {
  Result<PackageFile> package = open(test::zip_of({{"only", "content"}}));
  ASSERT_TRUE(package);
  const auto member = package->open_member(*package->find("only"));
  ASSERT_TRUE(member);
  std::vector<std::byte> bytes(4);
  const Status read = (*member)->read_at(5, bytes);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find(
                "/p: member only ends after 7 bytes; expected 4 bytes from byte 5 on: the file is damaged"),
            std::string::npos)
      << read.error().message;
}

TEST_F(PackageFileTest, EveryTruncationIsAnError) {
  const std::string file = test::zip_of({{"first", "one"}, {"second", "two"}});
  for (std::size_t length = 0; length < file.size(); ++length) EXPECT_FALSE(open(file.substr(0, length))) << length;
}

TEST_F(PackageFileTest, RandomDamageNeitherCrashesNorReadsOutside) {
  const std::string whole = test::zip_of({{"first", "one"}, {"second", "two"}});
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::string file = whole;
    for (std::uint64_t flips = 1 + random.below(4); flips-- > 0;)
      file[random.below(file.size())] = static_cast<char>(random.below(256));
    Result<PackageFile> package = open(file);
    if (!package) continue;
    for (const char* name : {"first", "second"})
      if (const Member* member = package->find(name); member != nullptr)
        if (const Result<std::string> content = package->read(*member, 1000)) {
          EXPECT_LE(content->size(), file.size());
        }
  }
}

}  // namespace
}  // namespace disttrain::program
