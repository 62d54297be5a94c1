#include "input/block_cache.h"

#include <utility>

#include "common/check.h"

namespace disttrain::input {

std::unique_ptr<EncodedRows> SpareRows::take() {
  const std::lock_guard lock(spares_->mutex);
  if (spares_->rows.empty()) return std::make_unique<EncodedRows>();
  std::unique_ptr<EncodedRows> rows = std::move(spares_->rows.back());
  spares_->rows.pop_back();
  return rows;
}

BlockOfRows SpareRows::keep(std::unique_ptr<EncodedRows> rows) {
  return {rows.release(), [spares = spares_](EncodedRows* unused) {
            std::unique_ptr<EncodedRows> owned(unused);
            owned->clear();
            const std::lock_guard lock(spares->mutex);
            if (spares->rows.size() < kMost) spares->rows.push_back(std::move(owned));
          }};
}

bool BlockCache::claim(std::size_t block, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (places_.contains(block)) return false;
  errors_.erase(block);
  entries_.push_front({.block = block, .is_made = false, .rows = nullptr, .bytes = bytes});
  places_[block] = entries_.begin();
  bytes_ += bytes;
  drop_old(block);
  return true;
}

void BlockCache::drop_old(std::size_t but) {
  auto last = entries_.end();
  while (bytes_ > most_bytes_ && last != entries_.begin()) {
    --last;
    if (!last->is_made || last->block == but) continue;
    bytes_ -= last->bytes;
    places_.erase(last->block);
    last = entries_.erase(last);
  }
}

void BlockCache::put(std::size_t block, Result<BlockOfRows> made) {
  const std::lock_guard lock(mutex_);
  const auto place = places_.find(block);
  DISTTRAIN_CHECK(place != places_.end() && !place->second->is_made);
  bytes_ -= place->second->bytes;
  if (!made) {
    errors_.insert_or_assign(block, made.error());
    entries_.erase(place->second);
    places_.erase(place);
  } else {
    Entry& entry = *place->second;
    entry.is_made = true;
    entry.rows = std::move(*made);
    entry.bytes = entry.rows->bytes();
    bytes_ += entry.bytes;
    drop_old(block);
  }
  made_.notify_all();
}

std::optional<Result<BlockOfRows>> BlockCache::get(std::size_t block) {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto place = places_.find(block);
    if (place == places_.end()) {
      const auto failed = errors_.find(block);
      if (failed == errors_.end()) return std::nullopt;
      return tl::unexpected(failed->second);
    }
    if (place->second->is_made) {
      entries_.splice(entries_.begin(), entries_, place->second);
      return place->second->rows;
    }
    made_.wait(lock);
  }
}

std::uint64_t BlockCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace disttrain::input
