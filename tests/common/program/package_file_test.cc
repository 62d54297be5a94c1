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

TEST_F(PackageFileTest, DamagedContentHasAWrongChecksum) {
  std::string file = test::zip_of({{"only", "content"}});
  file[file.find("content")] = 'k';
  Result<PackageFile> package = open(file);
  ASSERT_TRUE(package);
  const Result<std::string> read = package->read(*package->find("only"), 100);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("member only has a wrong checksum"), std::string::npos);
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
