// The compiler's C surface for tests: a request with sensible defaults, and its result as values.
// Thread-safety: distinct calls may run on distinct threads.
#pragma once

#include "compiler/api/nsa_compiler.h"
#include "runtime/base/manifest.h"
#include "runtime/base/status.h"

#include <map>
#include <string>
#include <vector>

namespace nsa::test {

struct CompileCall {
  std::string target = "cpu";
  std::string op = "window";
  std::map<std::string, std::string> fixed = {{"dtype", "bf16"},  {"group", "8"},        {"packed", "0"},
                                              {"page_size", "0"}, {"many_queries", "1"}, {"qk_dim", "64"},
                                              {"v_dim", "64"}};
  std::string programText; // of a program of one's own; empty: a template is compiled
  std::string templateName;
  std::map<std::string, std::string> config;
  std::string templateDir;
  std::string nvrtcPath;
  int32_t driverVersion = 0;
  nsa_compiler_stage stage = NSA_COMPILER_STAGE_BINARY;
  std::string cpuFeatures = "x86-64-v3"; // the same on every machine that runs the tests

  struct Listed {
    std::string templateName, config;
    double cost;
    bool operator==(const Listed &) const = default;
  };
  struct Compiled {
    std::string bytes, manifest, timings;
  };

  Result<std::vector<Listed>> list() const {
    return call<std::vector<Listed>>(&nsa_compiler_api::list, [](const nsa_compiler_result *result) {
      std::vector<Listed> listed;
      for (size_t i = 0; i < api().candidate_count(result); ++i)
        listed.push_back(
            {api().candidate_template(result, i), api().candidate_config(result, i), api().candidate_cost(result, i)});
      return listed;
    });
  }

  Result<Compiled> compile() const {
    return call<Compiled>(&nsa_compiler_api::compile, [](const nsa_compiler_result *result) {
      size_t size = 0;
      auto *bytes = static_cast<const char *>(api().output(result, &size));
      return Compiled{std::string(bytes, size), api().manifest(result), api().timings(result)};
    });
  }

  static const nsa_compiler_api &api() {
    static const nsa_compiler_api *found = nsa_compiler_get_api(NSA_COMPILER_ABI_VERSION);
    return *found;
  }

private:
  using Function = nsa_compiler_status (*nsa_compiler_api::*)(const nsa_compiler_request *, nsa_compiler_result **);

  template <typename T, typename Read> Result<T> call(Function function, Read read) const {
    auto pairs = [](const std::map<std::string, std::string> &values) {
      std::vector<nsa_compiler_value> list;
      for (const auto &[name, value] : values)
        list.push_back({name.c_str(), value.c_str()});
      return list;
    };
    std::vector<nsa_compiler_value> fixedPairs = pairs(fixed), configPairs = pairs(config);
    nsa_compiler_request request = {};
    request.size = sizeof request;
    request.target = target.c_str();
    request.op = op.c_str();
    request.fixed = fixedPairs.data();
    request.fixed_count = fixedPairs.size();
    request.template_name = templateName.c_str();
    request.config = configPairs.data();
    request.config_count = configPairs.size();
    request.template_dir = templateDir.c_str();
    request.nvrtc_path = nvrtcPath.c_str();
    request.driver_version = driverVersion;
    request.stage = stage;
    request.cpu_features = cpuFeatures.c_str();
    request.program_name = "program";
    request.program_text = programText.empty() ? nullptr : programText.c_str();

    nsa_compiler_result *result = nullptr;
    nsa_compiler_status code = (api().*function)(&request, &result);
    struct Owner {
      nsa_compiler_result *result;
      ~Owner() { api().destroy(result); }
    } owner{result};
    if (code == 0)
      return read(result);
    ErrorInfo info;
    info.code = static_cast<ErrorCode>(code);
    info.field = api().error_field(result);
    info.value = api().error_value(result);
    info.rule = api().error_rule(result);
    info.message = api().error_message(result);
    info.hint = api().error_hint(result);
    return Status(std::move(info));
  }
};

} // namespace nsa::test
