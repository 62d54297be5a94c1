// A data set whose records are read from their files for each batch, because they don't fit into memory.
//
// If records are read by blocks (shuffle = "blocks", or compressed files), a block is decoded as a whole, and the
// blocks that were used last are kept. Otherwise the records of a batch are read one by one, those beside each other
// together. Images are always read one by one: their pixels take much more memory than their files, and change in each
// epoch.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "workerd/input/block_cache.h"
#include "workerd/input/columns.h"
#include "workerd/input/data_figures.h"
#include "workerd/input/dataset.h"
#include "workerd/input/record_files.h"
#include "workerd/input/record_format.h"
#include "workerd/input/record_index.h"

namespace disttrain::input {

struct StreamedOptions {
  std::vector<ColumnSection> columns;
  std::shared_ptr<const FittedColumns> fitted;
  std::uint64_t begin = 0;  // records [begin, end) of the index
  std::uint64_t end = 0;
  // The first record of each block of the index; empty: records may be read in any order.
  std::vector<std::uint64_t> blocks;
  // Whole blocks are decoded and kept. Otherwise records are read one by one; those of a block are beside each other.
  bool keeps_blocks = false;
  double scale = 1.0;        // pixels that become floats are multiplied by this
  std::uint64_t memory = 0;  // the most memory for decoded blocks, in bytes
};

class StreamedDataset final : public Dataset {
 public:
  StreamedDataset(std::unique_ptr<RecordIndex> index, std::unique_ptr<RecordFormat> format, StreamedOptions options);
  ~StreamedDataset() override;

  std::uint64_t records() const override { return options_.end - options_.begin; }
  const std::vector<DatasetColumn>& columns() const override { return columns_; }
  std::uint64_t bytes_read() const override { return figures_.bytes_read; }
  const std::vector<std::string>& label_names() const override { return label_names_; }
  std::shared_ptr<const FittedColumns> fitted_columns() const override { return options_.fitted; }
  std::vector<std::uint64_t> blocks() const override;
  std::uint64_t hash() const override { return index_->hash(); }
  std::string notice() const override { return index_->notice(); }
  const DataFigures* figures() const override { return &figures_; }

  Status gather(std::span<const std::uint64_t> indices, std::span<const ColumnOut> columns,
                const Draw& draw) const override;

 private:
  struct Scratch;
  // A record of a batch: a row of decoded records.
  struct Row {
    const EncodedRows* rows = nullptr;
    std::uint64_t row = 0;
  };

  // Appends `count` records of one file, from `first` of the index on.
  Status decode(std::uint64_t first, std::uint64_t count, const Draw& draw, Scratch& scratch, EncodedRows& rows) const;
  Status decode_packed(std::uint64_t first, std::uint64_t count, Scratch& scratch, EncodedRows& rows) const;
  // These set scratch.rows, one row for each index.
  Status find_records(std::span<const std::uint64_t> indices, const Draw& draw, Scratch& scratch) const;
  Status find_in_blocks(std::span<const std::uint64_t> indices, Scratch& scratch) const;
  Result<BlockOfRows> make_block(std::size_t number, Scratch& scratch) const;
  std::size_t block_of(std::uint64_t record) const;
  Status check_limit(std::span<const std::uint64_t> indices, const std::vector<Row>& rows, const ColumnSpec& as) const;
  std::string place_of(std::uint64_t record) const;

  std::unique_ptr<Scratch> take_scratch() const;

  const std::unique_ptr<RecordIndex> index_;
  const std::unique_ptr<RecordFormat> format_;
  const StreamedOptions options_;
  const ColumnEncoder encoder_;
  const RecordFiles files_;
  std::vector<DatasetColumn> columns_;
  std::vector<std::string> label_names_;
  mutable DataFigures figures_;
  mutable BlockCache blocks_;

  mutable std::mutex mutex_;                                 // guards the member below
  mutable std::vector<std::unique_ptr<Scratch>> scratches_;  // those that no thread uses
};

}  // namespace disttrain::input
