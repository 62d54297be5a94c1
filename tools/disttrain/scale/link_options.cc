#include "tools/disttrain/scale/link_options.h"

#include <charconv>

#include "common/config/reader/schema.h"
#include "common/printable.h"

namespace disttrain::cli {
namespace {

constexpr double kBitsOfByte = 8.0;
constexpr double kLeastBits = 1e6;
constexpr double kMostBits = 1e13;

double factor_of(char unit) {
  switch (unit) {
    case 'K':
      return 1e3;
    case 'M':
      return 1e6;
    case 'G':
      return 1e9;
    case 'T':
      return 1e12;
    default:
      return 0.0;
  }
}

std::string quoted(const std::string& text) {
  return "'" + printable(text) + "'";
}

CLI::Option* add_time(CLI::App& verb, const char* name, std::string& text, const char* help, Duration most) {
  return verb.add_option(name, text, help)->type_name("TIME")->check([most](const std::string& given) -> std::string {
    if (parse_time(given, most)) return "";
    return quoted(given) + " isn't a time from 0s to " + config::toml_duration(most) + ", with a unit (us, ms, s)";
  });
}

}  // namespace

std::optional<double> parse_bandwidth(const std::string& text) {
  if (text.size() < 2) return std::nullopt;
  double number = 0.0;
  const char* unit = text.data() + text.size() - 1;
  const auto [end, error] = std::from_chars(text.data(), unit, number, std::chars_format::fixed);
  const double bits = number * factor_of(*unit);
  if (error != std::errc() || end != unit || !(bits >= kLeastBits && bits <= kMostBits)) return std::nullopt;
  return bits / kBitsOfByte;
}

std::optional<Duration> parse_time(const std::string& text, Duration most) {
  const std::optional<Duration> time = config::parse_duration(text);
  if (!time || *time > most) return std::nullopt;
  return time;
}

CLI::Option* add_bandwidth(CLI::App& verb, std::string& text) {
  return verb.add_option("--bandwidth", text, "bits per second of each host's network card, each way, such as 10G")
      ->type_name("BITS")
      ->check([](const std::string& given) -> std::string {
        if (parse_bandwidth(given)) return "";
        return quoted(given) + " isn't a bandwidth from 1M to 10T (bits per second, with K, M, G or T)";
      });
}

CLI::Option* add_latency(CLI::App& verb, std::string& text) {
  return add_time(verb, "--latency", text, "time until the first byte of a message arrives, such as 50us",
                  kMostLatency);
}

CLI::Option* add_compute(CLI::App& verb, std::string& text) {
  return add_time(verb, "--compute", text, "time for which a worker computes in each step, such as 30ms", kMostCompute);
}

scale::LinkSpeed link_speed(const std::string& bandwidth, const std::string& latency) {
  return {parse_bandwidth(bandwidth).value(), parse_time(latency, kMostLatency).value()};
}

}  // namespace disttrain::cli
