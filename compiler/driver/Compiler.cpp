#include "compiler/driver/Compiler.h"

#include "compiler/driver/Catalog.h"
#include "compiler/driver/DeviceSource.h"
#include "compiler/driver/TilePipeline.h"
#include "compiler/render/Declarations.h"
#include "compiler/render/Renderer.h"
#include "runtime/base/compiler_revision.h"
#include "runtime/base/digest.h"

#include <cstdlib>
#include <optional>
#include <tuple>

namespace nsa {

namespace {

// The template files of a request, and their headers.
struct Sources {
  std::optional<TemplateFiles> folder;
  std::optional<Catalog> ofFolder;
  const TemplateFiles *files = nullptr;
  const Catalog *catalog = nullptr;

  Status open(const CompilerRequest &request) {
    if (request.program) {
      files = &TemplateFiles::embedded();
      if (!request.templateFolder.empty()) {
        NSA_ASSIGN_OR_RETURN(TemplateFiles read, TemplateFiles::read(request.templateFolder));
        files = &folder.emplace(std::move(read));
      }
      NSA_ASSIGN_OR_RETURN(Catalog parsed, Catalog::ofProgram(*files, *request.program));
      catalog = &ofFolder.emplace(std::move(parsed));
      return Status::ok();
    }
    if (request.templateFolder.empty()) {
      files = &TemplateFiles::embedded();
      if (!Catalog::embedded())
        return Catalog::embedded().status();
      catalog = &*Catalog::embedded();
      return Status::ok();
    }
    Result<TemplateFiles> read = TemplateFiles::read(request.templateFolder);
    if (!read)
      return read.status();
    files = &folder.emplace(std::move(*read));
    Result<Catalog> parsed = Catalog::read(*files);
    if (!parsed)
      return parsed.status();
    catalog = &ofFolder.emplace(std::move(*parsed));
    return Status::ok();
  }
};

// One candidate on its way to one stage.
class Compilation {
public:
  Compilation(const CompilerRequest &request, const Sources &sources, Selection selection, Timings &timings)
      : request(request), files(*sources.files), catalog(*sources.catalog), source(*selection.source),
        candidate(std::move(selection.candidate)), timings(timings) {}

  Status run(CompileOutput &result) {
    if (source.header.kind == TemplateKind::kHandScheduled)
      NSA_RETURN_IF_ERROR(render());
    if (request.stage == NSA_COMPILER_STAGE_TEMPLATE) {
      result.bytes = source.header.kind == TemplateKind::kTile ? source.file->text : std::move(rendered);
      return Status::ok();
    }
    NSA_RETURN_IF_ERROR(beginManifest());
    return source.header.kind == TemplateKind::kTile ? runTile(result) : runHandScheduled(result);
  }

private:
  // A hand-scheduled template with the declarations that follow from its header.
  Status render() {
    for (size_t i = 0; i < source.header.params.size(); ++i) {
      const TemplateHeader::Line &condition = source.header.conditions[i], &pageRows = source.header.pageRows[i];
      Result<int64_t> isThere = condition.isPresent() ? condition.evaluate(candidate.values) : Result<int64_t>(1);
      if (!isThere)
        return isThere.status();
      if (!*isThere)
        continue;
      ManifestParam &param = manifest.params.emplace_back(source.header.params[i]);
      if (param.dtype == "dtype")
        param.dtype = std::string(dtypeName(request.dtype));
      if (!pageRows.isPresent())
        continue;
      NSA_ASSIGN_OR_RETURN(const int64_t rows, pageRows.evaluate(candidate.values));
      if (rows < 0 || rows > INT32_MAX || (rows > 0 && param.rank < 2))
        return templateError(pageRows.place, "paged " + pageRows.expression.text() + " = " + std::to_string(rows) +
                                                 " must be 0 to 2147483647, and 0 for a view of one coordinate");
      param.pageRows = static_cast<int>(rows);
    }
    candidate.values.set(std::string(kFactsHole), declareFacts(source.header, candidate.values));
    candidate.values.set(std::string(kArgumentsHole), declareArguments(manifest.params));
    Result<std::string> text = renderTemplate(source.file->text, source.file->path, candidate.values);
    if (!text)
      return text.status();
    rendered = std::move(*text);
    timings.lap("render");
    return Status::ok();
  }

  Status beginManifest() {
    manifest.templateName = source.header.name;
    manifest.op = request.op;
    manifest.target = std::string(request.target->name);
    manifest.fixed = request.fixed;
    manifest.config = candidate.config;
    for (int axis = 0; axis < 3; ++axis) {
      const TemplateHeader::Line &line = source.header.grid[axis];
      Result<Expression> bound = bindKnownNames(line.expression, candidate.values);
      if (!bound)
        return templateError(line.place, bound.status());
      manifest.grid[axis] = std::move(*bound);
    }
    return Status::ok();
  }

  Status runTile(CompileOutput &result) {
    Result<TileResult> tile =
        compileTileProgram({*source.tree, [&](std::string_view name) { return catalog.library(name); },
                            candidate.values.all(), *request.target, request.cpuFeatures, request.stage, manifest},
                           timings);
    if (!tile)
      return tile.status();
    manifest.params = std::move(tile->params);
    result.warnings = std::move(tile->warnings);
    if (request.target->isGpu && request.stage >= NSA_COMPILER_STAGE_CUDA) {
      manifest.sharedBytes = tile->sharedBytes;
      return finishGpu(tile->text, result);
    }
    if (request.stage == NSA_COMPILER_STAGE_BINARY)
      return finishCpu(*tile, result);
    result.bytes = std::move(tile->text);
    return Status::ok();
  }

  Status runHandScheduled(CompileOutput &result) {
    if (request.stage == NSA_COMPILER_STAGE_TILE || request.stage == NSA_COMPILER_STAGE_SCHEDULED)
      return Status::invalid("stage", std::string(stageName(request.stage)),
                             "does not exist for the hand-scheduled template " + source.header.name,
                             "it has template, cuda, ptx, cubin");
    NSA_RETURN_IF_ERROR(sizeMaps());
    manifest.sharedBytes = candidate.sharedBytes;
    return finishGpu(rendered, result);
  }

  Status sizeMaps() {
    for (const TemplateHeader::MapSizes &map : source.header.maps) {
      ManifestParam &param = manifest.params[map.param];
      for (const auto &[line, size, most] : {std::tuple(&map.columns, &param.columns, ManifestParam::kMostColumns),
                                             std::tuple(&map.heads, &param.boxHeads, ManifestParam::kMostBoxRows),
                                             std::tuple(&map.rows, &param.boxRows, ManifestParam::kMostBoxRows)}) {
        Result<int64_t> value = line->evaluate(candidate.values);
        if (!value)
          return value.status();
        if (*value < 1 || *value > most)
          return templateError(line->place, line->expression.text() + " = " + std::to_string(*value) +
                                                " must be 1 to " + std::to_string(most));
        *size = *value;
      }
      if (param.boxHeads * param.boxRows > ManifestParam::kMostBoxRows)
        return templateError(map.heads.place, "a box of map " + param.name + " has " +
                                                  std::to_string(param.boxHeads * param.boxRows) + " rows, at most " +
                                                  std::to_string(ManifestParam::kMostBoxRows) + " are possible");
      if (param.columns * dtypeBytes(request.dtype) % 16 != 0)
        return templateError(map.columns.place, "rows of map " + param.name + " must be multiples of 16 bytes");
    }
    return Status::ok();
  }

  Status finishGpu(const std::string &cuda, CompileOutput &result) {
    Result<DeviceSource> device = inlineDeviceLibrary(cuda, source.file->path, files);
    if (!device)
      return device.status();
    if (request.stage == NSA_COMPILER_STAGE_CUDA) {
      result.bytes = std::move(device->text);
      return Status::ok();
    }
    timings.lap("emit");
    Result<const Nvrtc *> nvrtc = Nvrtc::open(request.nvrtc);
    if (!nvrtc)
      return nvrtc.status();
    bool ptx = request.stage == NSA_COMPILER_STAGE_PTX;
    const auto compile = [&](int64_t residentBlocks) {
      return (*nvrtc)->compile(device->text, source.header.name + ".cu", request.target->name,
                               ptx ? Nvrtc::Output::kPtx : Nvrtc::Output::kCubin, residentBlocks);
    };
    Result<NvrtcOutput> output = compile(candidate.residentBlocks);
    if (!output)
      return output.status();
    if (candidate.residentBlocks)
      output->resources["resident_blocks"] = std::to_string(candidate.residentBlocks);
    // ptxas may spill to make room for blocks that shared memory keeps away: for sm_80 it makes some gradients of heads
    // of 256 with 32 registers. If it knows how many blocks there are, it takes the registers that they leave.
    if (const int64_t blocks = ptx || candidate.residentBlocks ? 0 : blocksOfSpilling(output->resources)) {
      Result<NvrtcOutput> roomy = compile(blocks);
      if (roomy && numberOf(roomy->resources, "spill_bytes") < numberOf(output->resources, "spill_bytes")) {
        output = std::move(roomy);
        output->resources["resident_blocks"] = std::to_string(blocks);
      }
    }
    timings.lap("nvrtc");
    result.bytes.assign(output->bytes.begin(), output->bytes.end());
    if (ptx)
      return Status::ok();

    // The launcher finds the kernel by this name, so a template must declare it without name mangling.
    if (output->entry != source.header.name)
      return templateError({source.file->path, 1}, "the kernel is called '" + output->entry + "'",
                           "an extern \"C\" kernel bears the name of its template, " + source.header.name);
    manifest.entry = output->entry;
    manifest.threads = static_cast<int32_t>(candidate.threads);
    manifest.evidence = std::move(output->resources);
    manifest.evidence["nvrtc"] = (*nvrtc)->version();
    Digest content;
    content.field("cuda").field(device->text).field((*nvrtc)->version());
    for (const std::string &option : Nvrtc::options(request.target->name))
      content.field(option);
    finishManifest(content, device->headers, result);
    return Status::ok();
  }

  static int64_t numberOf(const std::map<std::string, std::string> &resources, const char *name) {
    const auto found = resources.find(name);
    return found == resources.end() ? 0 : std::strtoll(found->second.c_str(), nullptr, 10);
  }

  // How many blocks of a kernel that spills a multiprocessor holds, if they leave registers; else 0.
  int64_t blocksOfSpilling(const std::map<std::string, std::string> &resources) const {
    if (numberOf(resources, "spill_bytes") == 0)
      return 0;
    const int64_t registers = numberOf(resources, "registers");
    const int64_t blocks = request.target->residentBlocks(registers, candidate.threads,
                                                          manifest.sharedBytes + numberOf(resources, "static_shared"));
    return Target::registersFor(blocks, candidate.threads) > registers ? blocks : 0;
  }

  Status finishCpu(const TileResult &tile, CompileOutput &result) {
    result.bytes.assign(tile.image.begin(), tile.image.end());
    manifest.entry = "+" + std::to_string(tile.entryOffset);
    manifest.scratchBytes = tile.scratchBytes;
    manifest.evidence["features"] = request.cpuFeatures;
    manifest.evidence["llvm"] = llvmVersion();
    Digest content;
    // The image is part of the key, so every change of a pass changes the key.
    content.field("cpu").field(request.cpuFeatures).field(result.bytes);
    finishManifest(content, {}, result);
    return Status::ok();
  }

  void finishManifest(Digest &content, const std::vector<const TemplateFile *> &headers, CompileOutput &result) {
    Digest revision;
    revision.field(source.file->text);
    for (const std::string &path : source.header.includes)
      revision.field(path).field(files.find(path)->text);
    for (const TemplateFile *library : source.imports)
      revision.field(library->path).field(library->text);
    for (const TemplateFile *header : headers)
      revision.field(header->path).field(header->text);
    manifest.revision = revision.finishHex();
    // The manifest is part of the key, because the launcher reads it: with a new grid in the header, the same text is a
    // different kernel.
    content.field(manifest.serialize());
    manifest.evidence["content"] = content.finishHex();
    manifest.evidence["compiler"] = compilerRevision();
    result.manifest = manifest.serialize();
  }

  const CompilerRequest &request;
  const TemplateFiles &files;
  const Catalog &catalog;
  const Template &source;
  TemplateCandidate candidate;
  Timings &timings;
  std::string rendered; // a hand-scheduled template
  Manifest manifest;
};

} // namespace

Result<std::vector<CandidateSummary>> listCandidates(const CompilerRequest &request) {
  Sources sources;
  NSA_RETURN_IF_ERROR(sources.open(request));
  Result<std::vector<Selection>> selections = sources.catalog->candidates(request);
  if (!selections)
    return selections.status();
  std::vector<CandidateSummary> summaries;
  for (const Selection &selection : *selections)
    summaries.push_back(
        {selection.source->header.name, selection.candidate.configText, static_cast<double>(selection.candidate.cost)});
  return summaries;
}

Result<CompileOutput> compileCandidate(const CompilerRequest &request) {
  Timings timings;
  Sources sources;
  NSA_RETURN_IF_ERROR(sources.open(request));
  Result<std::vector<Selection>> selections = sources.catalog->candidates(request);
  if (!selections)
    return selections.status();
  CompileOutput output;
  NSA_RETURN_IF_ERROR(Compilation(request, sources, std::move(selections->front()), timings).run(output));
  output.timings = timings.text();
  return output;
}

} // namespace nsa
