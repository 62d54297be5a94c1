// Puts records of about the same length into the same batch (data.bucket_by). It changes the order of an epoch only:
// each position still stands for one record, so leases and the ledger don't change.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace disttrain::input {

struct BucketOptions {
  std::uint64_t batch = 0;    // records of a batch; 0: no buckets
  std::uint64_t batches = 0;  // of a window, at least 1
  // Of each record. It must outlive the order.
  std::span<const std::uint32_t> lengths = {};
};

// The positions of an epoch are cut into windows of `batches * batch` positions. Within a window, the records are
// sorted by their lengths, and those of the same length by their positions before. Then they are cut into batches, and
// the batches are shuffled. If the last window has a smaller batch, that batch has the longest records and comes last.
//
// The order of a window takes 8 bytes per record. Those that were used last are kept. Any thread may call records_at().
class BucketOrder {
 public:
  // The order before: sets `out` to the records at the positions from `first` on.
  using RecordsAt = std::function<void(std::uint64_t first, std::span<std::uint64_t> out)>;

  // The shuffle of the batches depends on `seed`, `epoch` and the window.
  BucketOrder(const BucketOptions& options, std::uint64_t records, std::uint64_t seed, std::uint32_t epoch,
              RecordsAt before);

  // Sets `out` to the records at the positions from `first` on.
  void records_at(std::uint64_t first, std::span<std::uint64_t> out) const;

 private:
  using Window = std::shared_ptr<const std::vector<std::uint64_t>>;  // shared, because another thread may drop it

  Window window(std::uint64_t number) const;
  Window make(std::uint64_t number) const;

  const BucketOptions options_;
  const std::uint64_t records_;
  const std::uint64_t seed_;
  const std::uint32_t epoch_;
  const RecordsAt before_;

  // mutex_ guards the member below. It is held while a window is made.
  mutable std::mutex mutex_;
  struct Kept {
    std::uint64_t number = 0;
    Window records;
  };
  mutable std::vector<Kept> kept_;  // the window that was used last comes first
};

}  // namespace disttrain::input
