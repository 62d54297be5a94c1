#include "tools/disttrain/printable_output.h"

#include <algorithm>
#include <streambuf>
#include <string>

#include "common/printable.h"

namespace disttrain::cli {

// Passes on what it gets, line by line, and at each flush.
class PrintableOutput::Filter final : public std::streambuf {
 public:
  explicit Filter(std::streambuf& to) : to_(to) {}

  std::streambuf& target() { return to_; }

  bool write_raw(std::string_view codes) { return pass_on(true) && put(codes); }

  // `is_all`: also the begin of a character whose other bytes haven't come.
  bool pass_on(bool is_all) {
    const std::size_t size = is_all ? text_.size() : text_.size() - begun_character();
    std::string shown;
    for (std::size_t at = 0; at < size;) {
      const std::size_t end = std::min(text_.find('\t', at), size);
      shown += printable(std::string_view(text_).substr(at, end - at), Lines::kMany);
      if (end < size) shown += '\t';
      at = end + 1;
    }
    text_.erase(0, size);
    return put(shown);
  }

 protected:
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    const char byte = traits_type::to_char_type(c);
    return xsputn(&byte, 1) == 1 ? c : traits_type::eof();
  }
  std::streamsize xsputn(const char* bytes, std::streamsize count) override {
    const std::string_view added(bytes, static_cast<std::size_t>(count));
    text_ += added;
    return added.find('\n') == std::string_view::npos || pass_on(false) ? count : 0;
  }
  int sync() override { return pass_on(false) && to_.pubsync() == 0 ? 0 : -1; }

 private:
  // The bytes at the end that begin a character of UTF-8 which isn't whole.
  std::size_t begun_character() const {
    for (std::size_t back = 1; back <= std::min<std::size_t>(3, text_.size()); ++back) {
      const auto byte = static_cast<unsigned char>(text_[text_.size() - back]);
      if (byte < 0x80) return 0;
      if (byte < 0xC0) continue;
      const std::size_t bytes = byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
      return bytes > back ? back : 0;
    }
    return 0;
  }
  bool put(std::string_view text) {
    return to_.sputn(text.data(), static_cast<std::streamsize>(text.size())) ==
           static_cast<std::streamsize>(text.size());
  }

  std::streambuf& to_;
  std::string text_;
};

PrintableOutput::PrintableOutput(std::ostream& out) : out_(out), filter_(std::make_unique<Filter>(*out.rdbuf())) {
  out_.flush();
  const std::ios_base::iostate state = out_.rdstate();
  out_.rdbuf(filter_.get());
  out_.setstate(state);  // rdbuf() clears it
}

PrintableOutput::~PrintableOutput() {
  const bool is_written = filter_->pass_on(true);
  const std::ios_base::iostate state = out_.rdstate();
  out_.rdbuf(&filter_->target());
  out_.clear(is_written ? state : state | std::ios_base::badbit);
}

void write_codes(std::ostream& out, std::string_view codes) {
  auto* const filter = dynamic_cast<PrintableOutput::Filter*>(out.rdbuf());
  if (filter == nullptr)
    out << codes;
  else if (!filter->write_raw(codes))
    out.setstate(std::ios_base::badbit);
}

}  // namespace disttrain::cli
