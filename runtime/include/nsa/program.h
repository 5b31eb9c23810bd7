/* Programs of one's own in the tile language (docs/language.md): compiled, tuned, stored and run as the kernels of
 * operators are. Included by nsa.h.
 */
#ifndef NSA_PROGRAM_H
#define NSA_PROGRAM_H

#include "nsa.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct nsa_program nsa_program;

/* The text of a program. Set either `path` or `text`. */
typedef struct nsa_program_source {
  size_t size;
  const char *path; /* a file. Libraries that it imports lie in the folder `library` beside it, or ship with the
                       compiler. The program NAME of its clause `reference NAME` is the file NAME.tile beside it */
  const char *text; /* a text, which imports only libraries that ship with the compiler, and names no program */
  const char *name; /* what messages call `text`; NULL: "program" */
  int64_t reserved[4];
} nsa_program_source;

/* A value by name: of what the program declares `fixed`; the element type of the call, "dtype" (bf16, fp16 or fp32); or
 * the greatest value of a scalar of which the program's grid or tensors are made. Greatest values choose the kernel:
 * calls with other values are served, too. */
typedef struct nsa_program_value {
  const char *name;
  const char *value;
} nsa_program_value;

/* A tensor by the name that the program declares. Its dimensions are the declared coordinates in their order, and
 * behind them the elements of a row. */
typedef struct nsa_program_tensor {
  const char *name;
  const nsa_tensor *tensor;
} nsa_program_tensor;

/* A scalar by name. A scalar that alone is the extent of a dimension of a bound tensor may be left out. */
typedef struct nsa_program_scalar {
  const char *name;
  double value; /* of an i32 a whole number */
} nsa_program_scalar;

/* Reads the program, and finds or makes its kernel for the values, as nsa_plan_create_with does for a spec. What is
 * read here is what runs: a file that changes later changes no nsa_program. The key of the kernel is a digest of the
 * program's texts, its reference's included, and the values. Under the policy `background`, a
 * later call with the same texts and values gets the kernel that was tuned meanwhile. No callback tells of it. While
 * nsa_stats.background_pending is not 0, a tuning is under way. A program is immutable and may be run by many threads
 * at once. It may be destroyed after its engine. What `nsa check` warns of in the text is logged when the kernel is
 * compiled, with the tag "program". */
NSA_API nsa_status nsa_program_create(nsa_engine *engine, const nsa_program_source *source,
                                      const nsa_program_value *values, size_t value_count, void *stream,
                                      nsa_program **program, nsa_error *error) NSA_NOEXCEPT;
NSA_API void nsa_program_destroy(nsa_program *program) NSA_NOEXCEPT;

/* As nsa_plan_workspace_size. */
NSA_API nsa_status nsa_program_workspace_size(const nsa_program *program, size_t *bytes, nsa_error *error) NSA_NOEXCEPT;

/* Checks the tensors and launches the kernel on `stream`, under the rules of nsa_run: it allocates nothing, takes no
 * lock and may be captured into a CUDA graph. A tensor that is not optional must be bound. */
NSA_API nsa_status nsa_program_run(const nsa_program *program, const nsa_program_tensor *tensors, size_t tensor_count,
                                   const nsa_program_scalar *scalars, size_t scalar_count, void *workspace,
                                   size_t workspace_bytes, void *stream, nsa_error *error) NSA_NOEXCEPT;

/* Runs a call in an interpreter of the tile language, in the configuration of the program's kernel, and returns as an
 * error what the program does that it must not do: loads and stores outside of a tensor, two rows or two programs that
 * store to one place, and masks that leave out something where their `when` does not hold. The error's message names
 * file, line and column, the tensor, the coordinates and the extent, and shows the line; nsa_error_get_info has it
 * whole. The tensors are as for nsa_run of the engine's device. If nothing is found, the tensors that the program
 * stores to get what the interpreter has computed; otherwise no tensor is changed. Waits for `stream` before, returns
 * when all is done, and may not be captured. The interpreter takes about a microsecond for each operation of an
 * element. It has no lists: a program with `top` is NSA_UNSUPPORTED. A call has at most 2^26 elements in all its
 * tensors, with what lies between their elements: more are NSA_INVALID_ARGUMENT. A report of an earlier run that
 * nsa_program_status has not returned yet is returned first. */
NSA_API nsa_status nsa_program_check(const nsa_program *program, const nsa_program_tensor *tensors, size_t tensor_count,
                                     const nsa_program_scalar *scalars, size_t scalar_count, void *stream,
                                     nsa_error *error) NSA_NOEXCEPT;

/* For debugging. Runs the program as nsa_program_run does, waits, and says as JSON how far its results are from the
 * results of its reference on the same tensors: for each tensor that the program stores to the kernels and the errors
 * of nsa_plan_compare_report. The reference is what the program's clause `reference` says, or else the configuration of
 * the least cost, as in a tuning. Free the text with nsa_free. The call compiles the reference, and needs device memory
 * for copies of these tensors. It fails while `stream` captures, and under the miss policy `fail`. */
NSA_API nsa_status nsa_program_compare(const nsa_program *program, const nsa_program_tensor *tensors,
                                       size_t tensor_count, const nsa_program_scalar *scalars, size_t scalar_count,
                                       void *workspace, size_t workspace_bytes, void *stream, char **json,
                                       nsa_error *error) NSA_NOEXCEPT;

/* Waits for `stream`, and returns what the kernel has reported since the last call. The error, NSA_DEVICE_ERROR, names
 * the program, the code as the program declares it, and the number that the program reported with it. On the CPU
 * nsa_program_run returns the error. */
NSA_API nsa_status nsa_program_status(const nsa_program *program, void *stream, nsa_error *error) NSA_NOEXCEPT;

/* Describes the kernel as JSON; free it with nsa_free. */
NSA_API nsa_status nsa_program_describe(const nsa_program *program, char **json, nsa_error *error) NSA_NOEXCEPT;

/* Says as JSON which kernel a program would get and why, as nsa_explain does for a spec. */
NSA_API nsa_status nsa_program_explain(nsa_engine *engine, const nsa_program_source *source,
                                       const nsa_program_value *values, size_t value_count, char **json,
                                       nsa_error *error) NSA_NOEXCEPT;

/* Measures the candidates of a program's kernel and stores the winner. `budget_seconds` 0 is the engine's budget. The
 * report is JSON; `report` may be NULL. Candidates are compared with the reference that the program's clause
 * `reference` says, or else with the configuration of the least cost, on tensors of drawn numbers; int32 tensors
 * are 0. A candidate with another result is rejected. */
NSA_API nsa_status nsa_program_tune(nsa_engine *engine, const nsa_program_source *source,
                                    const nsa_program_value *values, size_t value_count, double budget_seconds,
                                    char **report, nsa_error *error) NSA_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif
