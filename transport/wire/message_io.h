// Builds and reads Cap'n Proto messages. Only codecs may include this: those of transport/wire, and the codec of the
// chief's journal (chiefd/journal/codec.cc). A codec throws Malformed for a bad value, and Cap'n Proto throws its own
// exceptions. parse() and build() catch both and return a Result, so that no exception leaves the codecs.
#pragma once

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/exception.h>

#include <cstring>
#include <string>
#include <vector>

#include "common/result.h"
#include "transport/wire/codec.h"

namespace disttrain::wire {

struct Malformed {
  std::string what;
  ErrorCode code = ErrorCode::kData;
};

[[noreturn]] inline void malformed(std::string what) {
  throw Malformed{std::move(what)};
}

// The name of a message in errors, such as "message Hello".
struct MessageName {
  constexpr MessageName(const char* message) : what(message) {}
  constexpr MessageName(const char* noun, const char* rest) : kind(noun), what(rest) {}

  std::string text() const { return std::string(kind) + " " + what; }

  const char* kind = "message";
  const char* what;
};

// --- Reading.

inline capnp::ReaderOptions reader_options(std::size_t message_words) {
  capnp::ReaderOptions options;
  options.traversalLimitInWords = message_words + kTraversalSlackWords;
  options.nestingLimit = kMaxNesting;
  return options;
}

// The words of a message, aligned as Cap'n Proto needs them. If the bytes aren't aligned, AlignedMessage copies them;
// the copy of a small message is on the stack.
class AlignedMessage {
 public:
  explicit AlignedMessage(Bytes bytes) {
    const std::size_t words = bytes.size() / sizeof(capnp::word);
    if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(capnp::word) == 0) {
      words_ = {reinterpret_cast<const capnp::word*>(bytes.data()), words};
      return;
    }
    std::uint64_t* copy = small_;
    if (words > std::size(small_)) {
      large_.resize(words);
      copy = large_.data();
    }
    std::memcpy(copy, bytes.data(), words * sizeof(capnp::word));
    words_ = {reinterpret_cast<const capnp::word*>(copy), words};
  }
  AlignedMessage(const AlignedMessage&) = delete;
  AlignedMessage& operator=(const AlignedMessage&) = delete;
  kj::ArrayPtr<const capnp::word> words() const { return words_; }

 private:
  std::uint64_t small_[64];
  std::vector<std::uint64_t> large_;
  kj::ArrayPtr<const capnp::word> words_;
};

// Reads a message of type `Root` from `bytes`. `take` gets a Root::Reader, and returns the C++ value of the message.
template <typename Root, typename Take>
auto parse(MessageName name, Bytes bytes, Take take) -> Result<decltype(take(std::declval<typename Root::Reader>()))> {
  std::string why;
  ErrorCode code = ErrorCode::kData;
  try {
    if (bytes.size() < 2 * sizeof(capnp::word) || bytes.size() % sizeof(capnp::word) != 0)
      malformed("it has " + std::to_string(bytes.size()) + " bytes; expected whole words, at least two");
    const AlignedMessage message(bytes);
    capnp::FlatArrayMessageReader reader(message.words(), reader_options(message.words().size()));
    return take(reader.getRoot<Root>());
  } catch (const Malformed& bad) {
    why = bad.what;
    code = bad.code;
  } catch (const kj::Exception& bad) {
    why = bad.getDescription().cStr();
  }
  return fail(code, "can't read " + name.text() + ": " + why);
}

// --- Writing.

template <typename Root, typename Fill>
Result<std::vector<std::byte>> build(MessageName name, Fill fill) {
  std::string why;
  try {
    capnp::MallocMessageBuilder builder;
    fill(builder.initRoot<Root>());
    const kj::Array<capnp::word> words = capnp::messageToFlatArray(builder);
    const auto bytes = std::as_bytes(std::span(words.begin(), words.size()));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  } catch (const Malformed& bad) {
    why = bad.what;
  } catch (const kj::Exception& bad) {
    why = bad.getDescription().cStr();
  }
  return fail(ErrorCode::kData, "can't write " + name.text() + ": " + why);
}

}  // namespace disttrain::wire
