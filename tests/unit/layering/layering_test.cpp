// The one-way dependencies of docs/architecture.md, held over every include of the source and every link edge of
// the build. The table of layers on that page is what the tests hold to; an edge that is not in it fails with the file
// or target that made it, and an edge of the table that is nowhere in the source fails too.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nsa {
namespace {

namespace fs = std::filesystem;

struct Layer {
  std::string folder;
  // Besides itself. A name stands for the folder and all folders below it.
  std::vector<std::string> mayUse;
};

constexpr std::string_view kTableOfLayers = "| folder | holds | uses |";

// The names between backquotes.
std::vector<std::string> namesIn(std::string_view cell) {
  std::vector<std::string> names;
  for (size_t begin = cell.find('`'); begin != std::string_view::npos;) {
    const size_t end = cell.find('`', begin + 1);
    names.emplace_back(cell.substr(begin + 1, end - begin - 1));
    begin = end == std::string_view::npos ? end : cell.find('`', end + 1);
  }
  return names;
}

// From the lowest layer to the highest, as the table has them. What passes on the lists of runtime/model may be used
// with them.
std::vector<Layer> readLayers(std::istream &page) {
  std::vector<Layer> layers;
  std::string line;
  while (std::getline(page, line) && line != kTableOfLayers)
    ;
  std::getline(page, line); // |---|---|---|
  while (std::getline(page, line) && line.starts_with("|")) {
    const size_t last = line.rfind('|', line.size() - 2);
    const std::vector<std::string> folders = namesIn(line.substr(0, line.find('|', 1)));
    std::vector<std::string> uses = namesIn(line.substr(last));
    if (std::ranges::find(uses, "runtime/base") != uses.end())
      uses.emplace_back("runtime/model");
    for (const std::string &folder : folders)
      layers.push_back({folder, uses});
  }
  return layers;
}

const std::vector<Layer> &layers() {
  static const std::vector<Layer> all = [] {
    std::ifstream page(fs::path(NSA_SOURCE_DIR) / "docs/architecture.md");
    return readLayers(page);
  }();
  return all;
}

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

// The longest matching folder is a path's layer.
const Layer *layerOf(std::string_view path) {
  const Layer *best = nullptr;
  for (const Layer &layer : layers())
    if (isBelow(path, layer.folder) && (!best || layer.folder.size() > best->folder.size()))
      best = &layer;
  return best;
}

// "" when a file in folder `from` may use one in folder `to`.
std::string edgeError(std::string_view from, std::string_view to) {
  const Layer *user = layerOf(from), *used = layerOf(to);
  if (!user || !used)
    return std::string(user ? to : from) + " is in no layer of docs/architecture.md";
  if (user == used || std::any_of(user->mayUse.begin(), user->mayUse.end(),
                                  [&](const std::string &name) { return isBelow(used->folder, name); }))
    return "";
  return user->folder + " must not use " + used->folder;
}

// The same for targets. A target holds the code of the rooms below its folder: what may use one of them may link it.
std::string linkError(std::string_view from, std::string_view to) {
  const Layer *user = layerOf(from);
  if (user &&
      std::any_of(user->mayUse.begin(), user->mayUse.end(), [&](const std::string &name) { return isBelow(name, to); }))
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

// Calls `look` with each source file of the repository, as a path from its root, and each of its includes.
void forEachInclude(const fs::path &root,
                    const std::function<void(const std::string &file, const Include &include)> &look) {
  for (const char *top :
       {"runtime", "cache", "autotune", "compiler", "templates", "tools", "bench", "docs/examples", "tests"})
    for (const auto &entry : fs::recursive_directory_iterator(root / top)) {
      if (!entry.is_regular_file() || !isSource(entry.path()))
        continue;
      std::ifstream stream(entry.path());
      for (const Include &include : includesOf(stream))
        look(fs::relative(entry.path(), root).generic_string(), include);
    }
}

struct Link {
  std::string name, folder;         // of the target
  std::string linked, linkedFolder; // the folder is "" if the target is none of ours
};

std::vector<Link> linksOfTheBuild() {
  std::map<std::string, std::string> folders;
  std::vector<Link> links;
  for (const std::string &line : readLines(NSA_LINKS_FILE)) {
    std::istringstream words(line);
    std::string kind, name, value;
    words >> kind >> name >> value;
    if (kind == "target")
      folders[name] = value;
    else
      links.push_back({.name = name, .folder = {}, .linked = value, .linkedFolder = {}});
  }
  EXPECT_TRUE(folders.contains("nsa_base") && folders.contains("nsa_cache") && folders.contains("nsa_autotune"));
  for (Link &link : links) {
    link.folder = folders.at(link.name);
    link.linkedFolder = folders[link.linked];
  }
  // Interface targets of the top-level file, such as those around LLVM's components, are in no folder.
  std::erase_if(links, [](const Link &link) { return link.folder.empty(); });
  return links;
}

TEST(Layering, ReadsTheTable) {
  std::istringstream page("| a | b | c |\n\n| folder | holds | uses |\n|---|---|---|\n| `a` | `x`: y | - |\n"
                          "| `b`, `b/c` | z | `a`, `runtime/base` |\n\n| `d` | | |\n");
  const std::vector<Layer> read = readLayers(page);
  ASSERT_EQ(read.size(), 3U);
  EXPECT_EQ(read[0].folder, "a");
  EXPECT_TRUE(read[0].mayUse.empty());
  EXPECT_EQ(read[1].folder, "b");
  EXPECT_EQ(read[2].folder, "b/c");
  EXPECT_EQ(read[2].mayUse, (std::vector<std::string>{"a", "runtime/base", "runtime/model"}));
}

TEST(Layering, RulesCatchForbiddenEdges) {
  EXPECT_EQ(edgeError("cache", "runtime/base"), "");
  EXPECT_EQ(edgeError("runtime/engine/choices", "cache"), "");
  EXPECT_EQ(edgeError("runtime/engine/compile", "compiler/api"), "");
  EXPECT_EQ(edgeError("runtime/engine", "runtime/engine/plan"), "");
  EXPECT_EQ(edgeError("compiler/cpu", "compiler/dialect"), "");
  EXPECT_EQ(edgeError("tools/nsa/tune", "bench/measure"), "");
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
  EXPECT_GT(layers().size(), 40U);
  for (auto layer = layers().begin(); layer != layers().end(); ++layer) {
    EXPECT_TRUE(fs::is_directory(fs::path(NSA_SOURCE_DIR) / layer->folder)) << layer->folder;
    for (const std::string &name : layer->mayUse) {
      const auto isNamed = [&](const Layer &other) { return isBelow(other.folder, name); };
      EXPECT_TRUE(std::any_of(layers().begin(), layer, isNamed)) << layer->folder << " uses " << name;
      EXPECT_FALSE(std::any_of(std::next(layer), layers().end(), isNamed))
          << layer->folder << " uses " << name << ", which is not below it";
    }
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
  std::map<std::string, int> includes;
  forEachInclude(root, [&](const std::string &file, const Include &include) {
    const std::string folder = fs::path(file).parent_path().generic_string();
    ++includes[file.substr(0, file.find('/'))];
    EXPECT_EQ(restrictedError(kRestrictedHeaders, folder, include.name), "") << file;
    const std::string used = resolve(root, root / folder, include);
    if (!used.empty())
      EXPECT_EQ(edgeError(folder, used), "") << file << " includes " << include.name;
    else if (include.isQuoted && !isBelow(folder, "tests")) // tests may emulate a library under its own names
      EXPECT_TRUE(include.name.starts_with("mlir/") || include.name.starts_with("llvm/") ||
                  include.name.starts_with("llvm-c/"))
          << file << " includes \"" << include.name << "\", which is no path from the repository root";
    // A kernel has no toolkit and no C++ library: NVRTC gets our own text only.
    if (folder.starts_with("templates"))
      EXPECT_TRUE(include.isQuoted) << file << " includes <" << include.name << ">";
  });
  for (const char *top : {"runtime", "cache", "autotune", "compiler", "docs"})
    EXPECT_GT(includes[top], 1) << top << " was not looked at";
}

TEST(Layering, EveryLinkIsDrawn) {
  int seen = 0;
  for (const Link &link : linksOfTheBuild()) {
    EXPECT_EQ(restrictedError(kRestrictedLinks, link.folder, link.linked), "") << link.name << " links " << link.linked;
    if (link.linkedFolder.empty())
      continue;
    ++seen;
    EXPECT_EQ(linkError(link.folder, link.linkedFolder), "") << link.name << " links " << link.linked;
  }
  EXPECT_GE(seen, 2) << "nsa_cache and nsa_autotune at least";
}

// A reader takes the table for what is there, and not for what would be allowed.
TEST(Layering, EveryDrawnEdgeIsThere) {
  const fs::path root = NSA_SOURCE_DIR;
  std::set<std::pair<std::string, std::string>> edges; // folder, what it uses
  forEachInclude(root, [&](const std::string &file, const Include &include) {
    const fs::path folder = fs::path(file).parent_path();
    if (const Layer *used = layerOf(resolve(root, root / folder, include)))
      edges.emplace(layerOf(folder.generic_string())->folder, used->folder);
  });
  for (const Link &link : linksOfTheBuild())
    if (!link.linkedFolder.empty())
      edges.emplace(layerOf(link.folder)->folder, link.linkedFolder);
  for (const Layer &layer : layers())
    for (const std::string &name : layer.mayUse)
      EXPECT_TRUE(name == "runtime/model" || std::ranges::any_of(edges,
                                                                 [&](const auto &edge) {
                                                                   return edge.first == layer.folder &&
                                                                          (isBelow(edge.second, name) ||
                                                                           isBelow(name, edge.second));
                                                                 }))
          << layer.folder << " does not use " << name;
}

} // namespace
} // namespace nsa
