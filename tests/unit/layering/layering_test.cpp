// The one-way dependencies of docs/architecture.md, held over every include of the source and every link edge of
// the build. kLayers is the drawing; an edge that is not in it fails with the file or target that made it.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace nsa {
namespace {

namespace fs = std::filesystem;

struct Layer {
  std::string_view folder;
  // Besides itself. A name stands for the folder and all folders below it.
  std::vector<std::string_view> mayUse;
};

// From the lowest layer to the highest: a layer uses only layers in front of it. The longest matching folder is a
// path's layer.
const std::vector<Layer> kLayers = {
    {"runtime/include", {}},
    {"runtime/model", {}},
    {"runtime/base", {"runtime/model"}},
    {"runtime/process", {"runtime/base"}},
    {"runtime/json", {"runtime/model", "runtime/base"}},
    {"compiler/api", {}},
    {"templates", {}},
    {"cache/database", {"runtime/model", "runtime/base", "runtime/process"}},
    {"cache/rows", {"runtime/model", "runtime/base", "cache/database"}},
    {"cache/pack", {"runtime/model", "runtime/base", "cache/database", "cache/rows"}},
    {"cache", {"runtime/model", "runtime/base", "runtime/process", "cache/database", "cache/rows", "cache/pack"}},
    {"autotune/tuner", {"runtime/model", "runtime/base", "runtime/process"}},
    {"compiler", {"compiler/api", "runtime/model", "runtime/base"}},
    {"docs/examples", {"runtime/include"}},
    {"runtime/device", {"runtime/model", "runtime/base"}},
    {"runtime/cpu", {"runtime/model", "runtime/base", "runtime/process", "runtime/device"}},
    {"runtime/cuda", {"runtime/model", "runtime/base", "runtime/process", "runtime/device"}},
    {"runtime/engine/call", {"runtime/model", "runtime/base"}},
    {"runtime/engine/compile",
     {"runtime/model", "runtime/base", "runtime/process", "cache", "autotune/tuner", "compiler/api"}},
    {"runtime/engine/choices", {"runtime/model", "runtime/base", "runtime/process", "cache", "runtime/engine/compile"}},
    {"runtime/engine/options",
     {"runtime/model", "runtime/base", "runtime/process", "cache", "runtime/engine/compile", "runtime/engine/choices"}},
    {"runtime/engine/graph",
     {"runtime/model", "runtime/base", "runtime/device", "runtime/engine/call", "runtime/engine/choices"}},
    {"runtime/engine/report",
     {"runtime/model", "runtime/base", "cache", "autotune/tuner", "runtime/engine/choices", "runtime/engine/options",
      "runtime/engine/graph"}},
    {"runtime/engine/tune",
     {"runtime/model", "runtime/base", "runtime/process", "runtime/device", "cache", "autotune/tuner",
      "runtime/engine/call", "runtime/engine/compile", "runtime/engine/options", "runtime/engine/graph",
      "runtime/engine/report"}},
    {"runtime/engine/plan",
     {"runtime/model", "runtime/base", "runtime/process", "cache", "runtime/engine/compile", "runtime/engine/choices",
      "runtime/engine/options", "runtime/engine/graph", "runtime/engine/report", "runtime/engine/tune"}},
    {"runtime/engine",
     {"runtime/model", "runtime/base", "runtime/process", "runtime/device", "runtime/cpu", "runtime/cuda",
      "runtime/engine/call", "runtime/engine/compile", "runtime/engine/choices", "runtime/engine/options",
      "runtime/engine/graph", "runtime/engine/report", "runtime/engine/tune", "runtime/engine/plan"}},
    {"autotune/workload",
     {"runtime/model", "runtime/base", "runtime/process", "runtime/json", "cache", "autotune/tuner", "runtime/engine"}},
    {"runtime/capi",
     {"runtime/include", "runtime/model", "runtime/base", "runtime/process", "runtime/engine", "autotune/workload"}},
    {"runtime",
     {"runtime/model", "runtime/base", "runtime/process", "runtime/include", "cache",
      "autotune"}}, // its targets; all sources are in rooms
    {"tools/reference", {"runtime/model", "runtime/base"}},
    {"tools/report", {}},
    {"tools/render_tables", {"runtime/model", "runtime/base"}},
    {"tools/support",
     {"runtime/include", "runtime/model", "runtime/base", "runtime/cuda", "runtime/engine/graph", "runtime/capi",
      "tools/reference"}},
    {"bench/measure", {"runtime/model", "runtime/base", "tools/reference", "tools/support"}},
    {"bench/verbs",
     {"runtime/model", "runtime/base", "cache", "autotune/tuner", "runtime/engine/choices", "tools/reference",
      "tools/support", "bench/measure"}},
    {"tools/nsa/files",
     {"runtime/model", "runtime/base", "runtime/json", "cache/database", "autotune/workload", "tools/support"}},
    {"tools/nsa/command",
     {"runtime/model", "runtime/base", "runtime/json", "runtime/engine/tune", "tools/support", "tools/nsa/files"}},
    {"tools/nsa/cache",
     {"runtime/model", "runtime/base", "runtime/process", "cache", "runtime/engine", "tools/support", "tools/nsa/files",
      "tools/nsa/command"}},
    {"tools/nsa/tune",
     {"runtime/model", "runtime/base", "autotune", "tools/report", "tools/support", "bench/measure", "tools/nsa/files",
      "tools/nsa/command"}},
    {"tools/nsa",
     {"runtime/model", "runtime/base", "runtime/cuda", "runtime/engine", "runtime/capi", "cache", "autotune",
      "tools/report", "tools/render_tables", "tools/support", "bench/measure", "bench/verbs", "tools/nsa/files",
      "tools/nsa/command", "tools/nsa/cache", "tools/nsa/tune"}},
    {"tools/nsa/pages", {"tools/nsa", "runtime/capi"}},
    {"tools/nsa-opt", {"compiler"}},
    {"bench", {"runtime", "cache", "tools/support", "bench/measure"}},
    {"bench/micro",
     {"templates", "runtime/model", "runtime/base", "runtime/cuda", "compiler", "tools/support", "bench/measure"}},
    {"tests", {"runtime", "cache", "autotune", "compiler", "templates", "tools", "bench"}},
};

// Libraries that only some layers may see, by how their headers or link names begin.
struct Restricted {
  std::string_view prefix;
  std::vector<std::string_view> folders;
};
const std::vector<Restricted> kRestrictedHeaders = {
    {"llvm/", {"compiler", "tools/nsa-opt", "tests"}},
    {"llvm-c/", {"compiler", "tests"}},
    {"mlir/", {"compiler", "tools/nsa-opt", "tests"}},
    {"sqlite3.h", {"cache", "tests"}},
    {"zstd.h", {"cache", "tests"}},
    {"sodium.h", {"runtime/base", "cache"}},
    {"nlohmann/",
     {"runtime", "autotune/workload", "tools", "tests", "bench"}}, // not runtime/base: the compiler has no JSON
    {"cuda", {"runtime/cuda", "compiler/cuda", "tests", "bench"}},
    {"nvrtc.h", {"compiler/cuda", "tests"}},
};
const std::vector<Restricted> kRestrictedLinks = {
    {"LLVM", {"compiler", "tools/nsa-opt"}},
    {"MLIR", {"compiler", "tools/nsa-opt"}},
    {"nsa_llvm", {"compiler", "tools/nsa-opt"}},
    {"nsa_sqlite", {"cache"}},
    {"CUDA::", {}},
    {"cuda", {}},
    {"nvrtc", {}},
    {"nlohmann_json", {"runtime", "tools", "bench"}},
};

bool isBelow(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

const Layer *layerOf(std::string_view path) {
  const Layer *best = nullptr;
  for (const Layer &layer : kLayers)
    if (isBelow(path, layer.folder) && (!best || layer.folder.size() > best->folder.size()))
      best = &layer;
  return best;
}

// "" when a file in folder `from` may use one in folder `to`.
std::string edgeError(std::string_view from, std::string_view to) {
  const Layer *user = layerOf(from), *used = layerOf(to);
  if (!user || !used)
    return std::string(user ? to : from) + " is in no layer";
  if (user == used || std::any_of(user->mayUse.begin(), user->mayUse.end(),
                                  [&](std::string_view name) { return isBelow(used->folder, name); }))
    return "";
  return std::string(user->folder) + " must not use " + std::string(used->folder);
}

// The same for targets. A target holds the code of the rooms below its folder: what may use one of them may link it.
std::string linkError(std::string_view from, std::string_view to) {
  const Layer *user = layerOf(from);
  if (user &&
      std::any_of(user->mayUse.begin(), user->mayUse.end(), [&](std::string_view name) { return isBelow(name, to); }))
    return "";
  return edgeError(from, to);
}

std::string restrictedError(const std::vector<Restricted> &rules, std::string_view from, std::string_view name) {
  for (const Restricted &rule : rules)
    if (name.starts_with(rule.prefix)) {
      // runtime/model, runtime/base and runtime/process are below runtime but have their own, narrower rights.
      bool allowed = std::any_of(rule.folders.begin(), rule.folders.end(), [&](std::string_view folder) {
        const bool isFloor =
            isBelow(from, "runtime/base") || isBelow(from, "runtime/model") || isBelow(from, "runtime/process");
        return isBelow(from, folder) && !(folder == "runtime" && isFloor);
      });
      if (!allowed)
        return std::string(from) + " must not use " + std::string(name);
    }
  return "";
}

struct Include {
  std::string name;
  bool isQuoted = false;
};

std::vector<Include> includesOf(std::istream &stream) {
  std::vector<Include> includes;
  for (std::string line; std::getline(stream, line);) {
    size_t at = line.find_first_not_of(" \t");
    if (at == std::string::npos || line[at] != '#')
      continue;
    at = line.find_first_not_of(" \t", at + 1);
    if (at == std::string::npos || line.compare(at, 7, "include") != 0)
      continue;
    size_t open = line.find_first_of("\"<", at + 7);
    if (open == std::string::npos)
      continue;
    size_t close = line.find_first_of("\">", open + 1);
    if (close != std::string::npos)
      includes.push_back({line.substr(open + 1, close - open - 1), line[open] == '"'});
  }
  return includes;
}

// The repository path that an include names; "" when it is none of ours.
std::string resolve(const fs::path &root, const fs::path &directory, const Include &include) {
  if (fs::exists(root / "runtime/include" / include.name))
    return "runtime/include/" + include.name;
  std::string top = include.name.substr(0, include.name.find('/'));
  if (layerOf(include.name) && fs::is_directory(root / top))
    return include.name; // also what TableGen writes below the build folder
  if (include.isQuoted && fs::exists(directory / include.name))
    return fs::relative(directory / include.name, root).generic_string();
  // The compiler hands kernels the device library by bare names.
  std::string folder = fs::relative(directory, root).generic_string();
  bool isKernel = isBelow(folder, "templates") || isBelow(folder, "bench/micro/kernels");
  if (isKernel && fs::exists(root / "templates/device" / include.name))
    return "templates/device/" + include.name;
  return "";
}

bool isSource(const fs::path &path) {
  static const std::vector<std::string> kEndings = {".h", ".hpp", ".c", ".cpp", ".cu", ".cuh", ".inc"};
  return std::find(kEndings.begin(), kEndings.end(), path.extension()) != kEndings.end();
}

std::vector<std::string> readLines(const fs::path &path) {
  std::ifstream stream(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  return lines;
}

TEST(Layering, RulesCatchForbiddenEdges) {
  EXPECT_EQ(edgeError("cache", "runtime/base"), "");
  EXPECT_EQ(edgeError("runtime/engine/plan", "cache"), "");
  EXPECT_EQ(edgeError("runtime/engine/compile", "compiler/api"), "");
  EXPECT_EQ(edgeError("runtime/engine", "runtime/engine/plan"), "");
  EXPECT_EQ(edgeError("compiler/cpu", "compiler/dialect"), "");
  EXPECT_EQ(edgeError("tools/nsa", "bench/measure"), "");
  EXPECT_NE(edgeError("tools/nsa", "bench"), "");
  EXPECT_NE(edgeError("tools/nsa", "tests/harness"), "");
  EXPECT_NE(edgeError("tools/nsa", "compiler/driver"), "");
  EXPECT_EQ(linkError("tools/support", "runtime"), "");
  EXPECT_NE(linkError("tools/report", "runtime"), "");
  EXPECT_NE(edgeError("bench/measure", "tools/nsa"), "");
  EXPECT_EQ(edgeError("tests/unit/cli", "tools/nsa/tune"), "");
  EXPECT_NE(edgeError("runtime/base", "cache"), "");
  EXPECT_NE(edgeError("runtime/base", "runtime/process"), "");
  EXPECT_NE(edgeError("compiler/driver", "runtime/process"), "");
  EXPECT_NE(edgeError("runtime/base", "runtime/engine"), "");
  EXPECT_NE(edgeError("cache", "autotune/tuner"), "");
  EXPECT_NE(edgeError("autotune/tuner", "cache"), "");
  EXPECT_NE(edgeError("runtime/engine/tune", "autotune/workload"), "");
  EXPECT_NE(edgeError("autotune/workload", "tools/reference"), "");
  EXPECT_NE(edgeError("autotune/workload", "bench/measure"), "");
  EXPECT_NE(edgeError("runtime/base", "runtime/json"), "");
  EXPECT_NE(edgeError("cache", "runtime/engine"), "");
  EXPECT_NE(edgeError("runtime/engine", "compiler/driver"), "");
  EXPECT_NE(edgeError("runtime/engine/plan", "runtime/engine"), "");
  EXPECT_NE(edgeError("runtime/engine/graph", "runtime/engine/tune"), "");
  EXPECT_NE(edgeError("runtime/cuda", "runtime/engine/graph"), "");
  EXPECT_NE(edgeError("compiler/driver", "runtime/engine"), "");
  EXPECT_NE(edgeError("compiler/driver", "cache"), "");
  EXPECT_NE(edgeError("runtime/include", "runtime/base"), "");
  EXPECT_NE(edgeError("runtime/engine", "tools/reference"), "");
  EXPECT_EQ(edgeError("docs/examples/decode", "runtime/include"), "");
  EXPECT_NE(edgeError("docs/examples/decode", "runtime/engine"), "");
  EXPECT_NE(edgeError("somewhere", "cache"), "");
  EXPECT_NE(restrictedError(kRestrictedHeaders, "runtime/engine", "llvm/IR/Module.h"), "");
  EXPECT_NE(restrictedError(kRestrictedHeaders, "runtime/base", "nlohmann/json.hpp"), "");
  EXPECT_EQ(restrictedError(kRestrictedHeaders, "runtime/engine", "nlohmann/json.hpp"), "");
  EXPECT_NE(restrictedError(kRestrictedHeaders, "autotune", "cuda.h"), "");
  EXPECT_NE(restrictedError(kRestrictedLinks, "runtime", "LLVMSupport"), "");
  EXPECT_NE(restrictedError(kRestrictedLinks, "runtime", "CUDA::cuda_driver"), "");
}

TEST(Layering, LayersGoOneWay) {
  for (auto layer = kLayers.begin(); layer != kLayers.end(); ++layer)
    for (std::string_view name : layer->mayUse) {
      const auto isNamed = [&](const Layer &other) { return isBelow(other.folder, name); };
      EXPECT_TRUE(std::any_of(kLayers.begin(), layer, isNamed)) << layer->folder << " uses " << name;
      EXPECT_FALSE(std::any_of(std::next(layer), kLayers.end(), isNamed))
          << layer->folder << " uses " << name << ", which is not below it";
    }
}

TEST(Layering, ReadsIncludes) {
  std::istringstream text("#include \"a/b.h\"\n  #  include <c.h>\n// #include \"d.h\"\n#define include\n");
  std::vector<Include> includes = includesOf(text);
  ASSERT_EQ(includes.size(), 2u);
  EXPECT_EQ(includes[0].name, "a/b.h");
  EXPECT_TRUE(includes[0].isQuoted);
  EXPECT_EQ(includes[1].name, "c.h");
  EXPECT_FALSE(includes[1].isQuoted);
}

TEST(Layering, EveryIncludeIsDrawn) {
  const fs::path root = NSA_SOURCE_DIR;
  std::map<std::string, int> files;
  for (const char *top :
       {"runtime", "cache", "autotune", "compiler", "templates", "tools", "bench", "docs/examples", "tests"})
    for (const auto &entry : fs::recursive_directory_iterator(root / top)) {
      if (!entry.is_regular_file() || !isSource(entry.path()))
        continue;
      ++files[top];
      std::string file = fs::relative(entry.path(), root).generic_string();
      std::string folder = fs::path(file).parent_path().generic_string();
      std::ifstream stream(entry.path());
      for (const Include &include : includesOf(stream)) {
        EXPECT_EQ(restrictedError(kRestrictedHeaders, folder, include.name), "") << file;
        std::string used = resolve(root, entry.path().parent_path(), include);
        if (!used.empty())
          EXPECT_EQ(edgeError(folder, used), "") << file << " includes " << include.name;
        else if (include.isQuoted && !isBelow(folder, "tests")) // tests may simulate a library under its own names
          EXPECT_TRUE(include.name.starts_with("mlir/") || include.name.starts_with("llvm/") ||
                      include.name.starts_with("llvm-c/"))
              << file << " includes \"" << include.name << "\", which is no path from the repository root";
        // A kernel has no toolkit and no C++ library: NVRTC gets our own text only.
        if (folder.starts_with("templates"))
          EXPECT_TRUE(include.isQuoted) << file << " includes <" << include.name << ">";
      }
    }
  for (const char *top : {"runtime", "cache", "autotune", "compiler", "docs/examples"})
    EXPECT_GT(files[top], 1) << top << " was not looked at";
}

TEST(Layering, EveryLinkIsDrawn) {
  std::map<std::string, std::string> folders;
  std::vector<std::pair<std::string, std::string>> links;
  for (const std::string &line : readLines(NSA_LINKS_FILE)) {
    std::istringstream words(line);
    std::string kind, name, value;
    words >> kind >> name >> value;
    if (kind == "target")
      folders[name] = value;
    else
      links.emplace_back(name, value);
  }
  ASSERT_TRUE(folders.count("nsa_base") && folders.count("nsa_cache") && folders.count("nsa_autotune"));
  int seen = 0;
  for (const auto &[name, linked] : links) {
    const std::string &folder = folders.at(name);
    if (folder.empty())
      continue; // interface targets of the top-level file, e.g. around LLVM's components
    EXPECT_EQ(restrictedError(kRestrictedLinks, folder, linked), "") << name << " links " << linked;
    auto used = folders.find(linked);
    if (used == folders.end() || used->second.empty())
      continue;
    ++seen;
    EXPECT_EQ(linkError(folder, used->second), "") << name << " links " << linked;
  }
  EXPECT_GE(seen, 2) << "nsa_cache and nsa_autotune at least";
}

} // namespace
} // namespace nsa
