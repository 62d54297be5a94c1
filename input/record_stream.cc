#include "input/record_stream.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace disttrain::input {

// Moves the bytes without a record to the begin of the buffer, and reads on behind them. If they fill the buffer, it
// becomes twice as large.
Status RecordStream::refill() {
  const std::size_t kept = end_ - begin_;
  if (capacity_ == 0 || kept == capacity_) {
    // One byte more than a small file has shows that it has ended.
    const std::size_t larger =
        capacity_ == 0 ? std::min(kBlockBytes, file_.most_content_bytes() + 1) : std::max(kBlockBytes, 2 * capacity_);
    std::unique_ptr<std::byte[]> buffer = std::make_unique_for_overwrite<std::byte[]>(larger);
    if (kept > 0) std::memcpy(buffer.get(), buffer_.get() + begin_, kept);
    buffer_ = std::move(buffer);
    capacity_ = larger;
  } else if (kept > 0 && begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, kept);
  }
  begin_ = 0;
  const Result<std::size_t> got = file_.read({buffer_.get() + kept, capacity_ - kept});
  if (!got) return tl::unexpected(got.error());
  end_ = kept + *got;
  has_ended_ = end_ < capacity_;
  return {};
}

Result<bool> RecordStream::next() {
  found_ += records_.size();
  records_.clear();
  for (;;) {
    if (has_ended_ && begin_ == end_) return false;
    if (!has_ended_)
      if (Status ok = refill(); !ok) return tl::unexpected(std::move(ok.error()));
    if (begin_ == end_) return false;
    block_ = {.path = file_.path(),
              .offset = offset_,
              .first_record = found_,
              .is_last = has_ended_,
              .bytes = {buffer_.get() + begin_, end_ - begin_}};
    const Result<std::size_t> covered = format_.find(block_, records_);
    if (!covered) return tl::unexpected(covered.error());
    begin_ += *covered;
    offset_ += *covered;
    if (!records_.empty()) return true;
    // The rest of the file has no record, such as blank lines at its end.
    if (has_ended_) return false;
    if (*covered == 0 && block_.bytes.size() >= format_.most_record_bytes())
      return fail(ErrorCode::kData, name_of(block_, 0) + " has more than " +
                                        std::to_string(format_.most_record_bytes()) + " bytes: is data.format right?");
  }
}

}  // namespace disttrain::input
