// The checkpoint folder of a small job, on a disk in memory that can fail.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

#include "chiefd/folder_work.h"
#include "tests/common/checkpoint/memory_files.h"
#include "tests/common/checkpoint/small_job.h"

namespace disttrain::chiefd {

// A job "small" whose checkpoints are in /c. Each call of open() plays a newly started chief.
class FolderWorkTest : public testing::Test {
 protected:
  FolderWorkTest() {
    EXPECT_TRUE(files_.make_directory("/c"));
    EXPECT_TRUE(files_.make_directory("/away"));
  }
  std::string saved(std::uint64_t step) {
    EXPECT_TRUE(files_.make_directory("/c/small"));
    const auto path = checkpoint::save(files_, "/c/small", layout_, 1, step, 1, step);
    EXPECT_TRUE(path) << path.error().message;
    return path.value_or("");
  }
  Result<FolderAnswer> open(const std::string& committed) {
    return JobFolder(files_, [] { return std::int64_t{0}; }).carry_out(OpenFolder{"/c", "small", false, 7, committed});
  }

  // Makes every write fail, as on a file system that was mounted read-only or after the folder's owner has changed.
  // Other values of `error` stand for other faults, such as a full disk.
  void let_nothing_be_written(ErrorCode error = ErrorCode::kNoPermission) {
    files_.fault = [error](checkpoint::MemoryFiles::Op op, const std::string& path) -> std::optional<Error> {
      using Op = checkpoint::MemoryFiles::Op;
      if (op == Op::kOpen || (op == Op::kMakeDirectory && path == "/c/small")) return std::nullopt;
      return Error{error, "can't write " + path};
    };
  }

  checkpoint::MemoryFiles files_;
  const Layout layout_ = checkpoint::layout_of(checkpoint::small_model(), 2, 5);
};

}  // namespace disttrain::chiefd
