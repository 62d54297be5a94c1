// Plugins that can't be used: each is one sentence that says what is wrong and what to do.
#include "engine/pjrt/plugin.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

namespace disttrain::workerd::pjrt {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// DISTTRAIN_FAKE_PLUGINS is the folder with the libraries that CMake builds of fake_plugin.cc.
std::string fake(const std::string& kind) {
  return std::string(DISTTRAIN_FAKE_PLUGINS) + "/fake_plugin_" + kind + ".so";
}

Error error_of(const std::string& path) {
  const Result<std::unique_ptr<Client>> client = Client::open(path);
  EXPECT_FALSE(client) << path;
  if (client) return {};
  const std::string& message = client.error().message;
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 0) << message;
  EXPECT_THAT(message, HasSubstr("\"" + path + "\""));
  return client.error();
}

TEST(Plugin, AMissingFileIsNamed) {
  const Error error = error_of("/nowhere/plugin.so");
  EXPECT_EQ(error.code, ErrorCode::kNoInput);
  EXPECT_THAT(error.message, AllOf(HasSubstr("doesn't exist"), HasSubstr("device = \"pjrt:/path/plugin.so\"")));
}

TEST(Plugin, AFolderIsNoPlugin) {
  EXPECT_EQ(error_of("/usr").code, ErrorCode::kNoInput);
}

TEST(Plugin, AFileThatIsNoLibraryCantBeLoaded) {
  std::string path = testing::TempDir() + "/plugin.XXXXXX";
  const int descriptor = mkstemp(path.data());
  ASSERT_GE(descriptor, 0);
  close(descriptor);
  std::ofstream(path) << "not a library";
  const Error error = error_of(path);
  std::remove(path.c_str());
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_THAT(error.message, AllOf(StartsWith("can't load PJRT plugin"), HasSubstr("expected a shared library")));
}

TEST(Plugin, AnotherLibraryIsNoPlugin) {
  Dl_info libc{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&std::abort), &libc), 0);
  const std::string path = libc.dli_fname;
  const Error error = error_of(path);
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_THAT(error.message, HasSubstr("is not a PJRT plugin: it has no function GetPjrtApi"));
}

TEST(Plugin, APluginWithoutATableOfFunctionsIsRefused) {
  const Error error = error_of(fake("no_table"));
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_THAT(error.message, HasSubstr("gives no API"));
}

TEST(Plugin, AnotherMajorVersionIsRefusedWithBothVersions) {
  const Error error = error_of(fake("other_version"));
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_THAT(error.message, AllOf(HasSubstr("has version 1.81"), HasSubstr("expected 0.81")));
}

TEST(Plugin, AVersionThatLacksFunctionsIsRefused) {
  const Error error = error_of(fake("old_version"));
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_THAT(error.message, AllOf(HasSubstr("has version 0.7"), HasSubstr("lacks functions")));
}

TEST(Plugin, APluginWithoutOneOfTheFunctionsIsRefused) {
  const Error error = error_of(fake("lacks_function"));
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_THAT(error.message, HasSubstr("lacks function 20 of the PJRT C API 0.81"));
}

TEST(Plugin, WhatThePluginSaysWhenItFailsToInitializeIsShownInPart) {
  const Error error = error_of(fake("fails_to_initialize"));
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(error.message, AllOf(StartsWith("initializing PJRT plugin"), HasSubstr("\\x1b[31mfan\\nis stuck")));
  EXPECT_LT(error.message.size(), 3000U);
}

TEST(Plugin, ADeviceThatCantBeOpenedIsAnError) {
  const Error error = error_of(fake("fails_to_open"));
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(error.message, AllOf(StartsWith("opening the devices"), HasSubstr("is stuck")));
}

TEST(Plugin, APluginWithoutDevicesIsRefusedWithItsPlatform) {
  const Error error = error_of(fake("no_devices"));
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(error.message, HasSubstr("(platform fake) has no devices"));
}

TEST(Plugin, APluginCanBeOpenedAgain) {
  EXPECT_EQ(error_of(fake("no_devices")).message, error_of(fake("no_devices")).message);
}

}  // namespace
}  // namespace disttrain::workerd::pjrt
