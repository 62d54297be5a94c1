#include "chiefd/traces/trace_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>

#include "tests/chiefd/traces/trace_books.h"

namespace disttrain::chiefd {
namespace {

namespace fs = std::filesystem;

class TraceFile : public testing::Test {
 protected:
  TraceFile() : book_(test::one_frame()) {
    fs::create_directories(folder_);
    book_.folder = (folder_ / "events").string();
  }
  ~TraceFile() override { fs::remove_all(folder_); }

  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_ / "events"), {}));
  }

  const fs::path folder_ = fs::temp_directory_path() / ("trace_file_test." + std::to_string(getpid()));
  TraceBook book_;
};

TEST_F(TraceFile, IsInTheFolderOfTheEventFilesAndReadsAsJson) {
  const Result<std::string> path = write_trace_file(book_, 1700000000);
  ASSERT_TRUE(path) << path.error().message;
  EXPECT_EQ(*path, book_.folder + "/trace-1700000000-steps-1-2.json");
  std::ifstream file(*path);
  EXPECT_EQ(nlohmann::json::parse(file)["otherData"]["job"], "digits");
  EXPECT_EQ(files(), 1u) << "no temporary file is left";
}

TEST_F(TraceFile, MissingParentIsAnErrorAndIsNotMade) {
  book_.folder = (folder_ / "unmounted/events").string();
  const Result<std::string> path = write_trace_file(book_, 1700000000);
  ASSERT_FALSE(path);
  EXPECT_NE(path.error().message.find("can't make the folder " + book_.folder), std::string::npos);
  EXPECT_FALSE(fs::exists(folder_ / "unmounted"));
}

TEST_F(TraceFile, FailedRenameLeavesNoFile) {
  fs::create_directories(folder_ / "events/trace-1700000000-steps-1-2.json");
  const Result<std::string> path = write_trace_file(book_, 1700000000);
  ASSERT_FALSE(path);
  EXPECT_NE(path.error().message.find("can't rename"), std::string::npos);
  EXPECT_EQ(files(), 1u);
}

TEST_F(TraceFile, TheThreadTellsThePath) {
  std::promise<std::string> told;
  TraceWriter writer([&told](const TraceBook& book, const Result<std::string>& path) {
    told.set_value(path ? book.name + " " + *path : path.error().message);
  });
  writer.write(book_);
  const std::string text = told.get_future().get();
  EXPECT_TRUE(text.starts_with("digits " + book_.folder + "/trace-")) << text;
}

TEST_F(TraceFile, TraceThatHangsHoldsNoOther) {
  std::promise<void> let_go;
  std::promise<std::string> told;
  TraceWriter writer([&](const TraceBook& book, const Result<std::string>& path) {
    if (book.name == "hung")
      let_go.get_future().wait();
    else
      told.set_value(path.value_or("failed"));
  });
  TraceBook hung = book_;
  hung.name = "hung";
  hung.steps = {5, 6};  // another file
  writer.write(hung);
  writer.write(book_);
  EXPECT_NE(told.get_future().get(), "failed");
  let_go.set_value();
}

}  // namespace
}  // namespace disttrain::chiefd
