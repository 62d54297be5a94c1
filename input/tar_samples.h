// Reads tar files as webdataset writes them. Their members are files such as n01/0001.jpg and n01/0001.cls. Consecutive
// members with the same key make one sample, which is a record. The key is the name up to the first dot behind the last
// slash; the rest of the name is the extension. Members that aren't plain files, or whose file name has no key or no
// extension, belong to no sample. libarchive reads the tar file, with the names and sizes of GNU tar and of pax.
//
// Source: github.com/webdataset/webdataset, "The WebDataset Format".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/result.h"
#include "input/record_block.h"
#include "input/table.h"

namespace disttrain::input {

inline constexpr std::size_t kMaxSampleBytes = std::size_t{1} << 30;

// Replaces `records` by the places of the whole samples in the block. A place covers all members of a sample with their
// headers. Only the begin of the next sample, or the end of the file, shows that a sample is whole. Returns how many
// bytes of the block the samples cover. Errors, kData: a header is damaged, a sample has more than kMaxSampleBytes, or
// the file ends within a member or without the blocks of zeros that end a tar file.
Result<std::size_t> find_tar_samples(const RecordBlock& block, std::vector<RecordPlace>& records);

// Decodes samples of the block and replaces the content of `table`. `records` are from find_tar_samples(block). The
// name of a wanted column is an extension in lower case, such as "jpg", or several with semicolons between, such as
// "jpg;jpeg;png". "__key__" is the sample's key. A column of bytes gets the content of the member. A column of numbers
// gets the number that the member has as text (number_of_text()). A sample that lacks a member has no values there.
//
// Errors, kData, with file, record and column: two members of a sample fit a column, the text isn't a number, or a
// member is damaged or has holes. `table` is then unusable.
Status decode_tar_samples(const RecordBlock& block, std::span<const RecordPlace> records,
                          const std::vector<WantedColumn>& wanted, Table& table);

}  // namespace disttrain::input
