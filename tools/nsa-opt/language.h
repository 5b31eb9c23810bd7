// `nsa-opt --tile-language FILE`: a program in the tile language, down to the dialect, CUDA or an image for the CPU.
// Thread-safety: none.
#pragma once

namespace nsa {

// Runs the tool with the arguments behind `--tile-language`. Returns the exit code.
int runTileLanguage(int argc, char **argv);

} // namespace nsa
