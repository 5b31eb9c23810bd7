/* NSA Runtime: native sparse attention without Python and without PyTorch. The C ABI.
 *
 * The header nsa.h is the documentation of the C ABI, with the headers that it includes: names.h (the tensors of each
 * operator), convert.h (tensors of DLPack, and ranges), program.h (programs of one's own), report.h (what an engine and
 * a plan do) and tune.h (tuning). What is in none of them is no API.
 *
 * Conventions
 *  - Every struct that can grow begins with `size`, which the caller sets to sizeof(struct), also before a function
 *    fills it. Reserved fields of a struct must be zero. NSA_INIT(type) gives a zeroed struct with its size set. A host
 *    may have the smaller struct of an older nsa.h, or the larger struct of a newer one whose unknown fields are zero
 *    (docs/embedding.md). The entries of a list have no size: the host passes the size of one entry.
 *  - Handles are opaque. Destroy functions accept NULL. No function keeps a pointer to its arguments
 *    (a plan does not keep the spec, a run does not keep the tensors).
 *  - A function returns nsa_status and fills the caller's `nsa_error` (may be NULL) on failure.
 *  - The memory of an output must not overlap an input, another output or the workspace: `out` cannot take the place of
 *    `q`. Only OUT of rotate_bwd may take the place of X, if it has the io type and does not accumulate. nsa_run checks
 *    that two elements of an output share no memory. Of the operators whose names end in _bwd it also compares the
 *    outputs with all other tensors of the call. No function compares the outputs of other operators with other
 *    tensors, or anything with the workspace.
 *  - Shapes are in elements; strides are in elements; workspace sizes are in bytes; times are in
 *    milliseconds. Token positions start at 0. Log-sum-exp uses the natural logarithm.
 *  - `stream` is a CUstream (or cudaStream_t) of the engine's device, NULL for the default stream. A CPU engine ignores
 *    `stream`, and its nsa_run returns only when the outputs are written.
 *
 * Threads: an engine may be used by many threads at once. A plan is immutable and may be run by many threads at once,
 * each with its own workspace. A plan, its tensors and its workspace must stay valid until the work of its runs is
 * done. If a CUDA graph captured a run, each launch of the graph uses the plan, the tensors and the workspace of that
 * run again. An engine may be destroyed before its plans.
 *
 * The launch path: nsa_run allocates nothing, takes no lock, reads no file and no environment, formats no
 * text (except for an error) and never synchronises; it may be captured into a CUDA graph.
 */
#ifndef NSA_NSA_H
#define NSA_NSA_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define NSA_API __attribute__((visibility("default")))
#else
#define NSA_API
#endif

#ifdef __cplusplus
extern "C" {
#define NSA_NOEXCEPT noexcept
#else
#define NSA_NOEXCEPT
#endif

#define NSA_ABI_VERSION 0 /* 0 until 1.0: the minor version says which hosts fit (docs/embedding.md) */

typedef enum nsa_status {
  NSA_OK = 0,
  NSA_INVALID_ARGUMENT = 1, /* a spec, tensor, option or file breaks a rule */
  NSA_CACHE_MISS = 2,       /* policy `fail`, and no stored kernel serves the spec */
  NSA_UNAVAILABLE = 3,      /* no driver, no NVRTC, no compiler library, driver too old */
  NSA_UNSUPPORTED = 4,      /* legal, but neither device nor compiler here can run it */
  NSA_COMPILE_FAILED = 5,   /* a template, NVRTC or LLVM refused */
  NSA_DEVICE_ERROR = 6,     /* the driver returned an error, or the device reported a bad input */
  NSA_IO_ERROR = 7,         /* a file could not be read or written */
  NSA_CAPTURING = 8,        /* the stream captures and the plan is not in memory */
  NSA_OUT_OF_MEMORY = 9,
  NSA_INTERNAL = 10
} nsa_status;

/* Says why a function failed. The caller owns the struct. The texts in an nsa_error are NUL-terminated. A text that is
 * too long is cut and ends with "...": nsa_error_get_info has all of it. */
typedef struct nsa_error {
  nsa_status code;
  char field[64];    /* the field at fault, e.g. "window"; "" when no field is */
  char value[128];   /* the value of the field */
  char rule[256];    /* the rule that the value broke */
  char message[512]; /* one sentence that is complete without field, value and rule; nsa_status_name tells the code */
  char hint[384];    /* what to do; "" when there is no advice. The hint of NSA_CACHE_MISS is a command for a POSIX
                        shell, which makes what was missing */
} nsa_error;

/* The last failure of the calling thread, whole. Before the first failure `code` is NSA_OK and all texts are "". The
 * texts belong to the library, and stay as they are until a function fails on this thread again. */
typedef struct nsa_error_info {
  size_t size;
  nsa_status code;
  const char *field, *value, *rule, *message, *hint; /* as in nsa_error */
} nsa_error_info;

typedef enum nsa_dtype { NSA_BF16 = 0, NSA_FP16 = 1, NSA_FP32 = 2, NSA_INT32 = 3 } nsa_dtype;

/* The operators, with the names that docs/specification.md gives them. */
typedef enum nsa_op {
  NSA_OP_DENSE = 0,         /* causal attention over all keys up to the query's own position */
  NSA_OP_WINDOW = 1,        /* attention over the last `window` keys, the query's own included */
  NSA_OP_COMPRESS = 2,      /* makes one row of each block of keys, and of values */
  NSA_OP_CMP = 3,           /* attention over the compressed blocks that end at or before the query */
  NSA_OP_SELECT = 4,        /* chooses the blocks that the heads of a group attend for each query */
  NSA_OP_SEL = 5,           /* attention over the blocks of a list */
  NSA_OP_COMBINE = 6,       /* the gated sum of the branches */
  NSA_OP_NSA = 7,           /* the whole forward pass: compress, cmp, select, sel, window, combine */
  NSA_OP_DECODE = 8,        /* puts new tokens into a cache, and computes nsa of their queries over it */
  NSA_OP_ROTATE = 9,        /* turns pairs of elements of each head by angles that grow with the token's position */
  NSA_OP_ROTATE_BWD = 10,   /* the same by the negative angles: the gradient of rotate */
  NSA_OP_COMBINE_BWD = 11,  /* the gradients of combine */
  NSA_OP_DENSE_BWD = 12,    /* the gradients of dense */
  NSA_OP_WINDOW_BWD = 13,   /* the gradients of window */
  NSA_OP_CMP_BWD = 14,      /* the gradients of cmp */
  NSA_OP_INVERT = 15,       /* finds which queries list each block */
  NSA_OP_COMPRESS_BWD = 16, /* the gradients of compress */
  NSA_OP_SEL_BWD = 17,      /* the gradients of sel */
  NSA_OP_NSA_BWD = 18       /* the gradients of nsa */
} nsa_op;

/* How a block of keys or values becomes one row. x[i] is the key or value of token i of the block, and pe[i] is an
 * optional embedding of the position i.
 *   mean:   the mean of x
 *   linear: sum_i (x[i] + pe[i]) W[i] + b
 *   mlp:    act((concat_i (x[i] + pe[i])) W1 + b1) W2 + b2 */
typedef enum nsa_cmp_kind { NSA_CMP_MEAN = 0, NSA_CMP_LINEAR = 1, NSA_CMP_MLP = 2 } nsa_cmp_kind;
typedef enum nsa_activation { NSA_RELU = 0, NSA_GELU = 1 /* with erf */, NSA_SILU = 2 } nsa_activation;

/* What the tensor GATES holds: the gates themselves, logits whose sigmoid is the gate, or logits whose softmax over the
 * branches gives the gates. */
typedef enum nsa_gate { NSA_GATE_VALUE = 0, NSA_GATE_SIGMOID = 1, NSA_GATE_SOFTMAX = 2 } nsa_gate;
typedef enum nsa_rotary_style { NSA_ROTARY_HALF = 0, NSA_ROTARY_INTERLEAVED = 1 } nsa_rotary_style;

/* Bits of nsa_spec.branches. */
enum { NSA_BRANCH_CMP = 1, NSA_BRANCH_SEL = 2, NSA_BRANCH_WIN = 4, NSA_BRANCHES_ALL = 7 };

typedef enum nsa_layout {
  NSA_LAYOUT_DENSE = 0, /* [batch, time, heads, dim] */
  NSA_LAYOUT_PACKED = 1 /* [total, heads, dim] with cu_seqlens_q / cu_seqlens_k, int32 [batch+1] */
} nsa_layout;

/* What is computed. An operator reads the fields of the spec that it needs and ignores the rest. A number at the end of
 * a comment is the default that nsa_spec_init sets. With h = query_heads / kv_heads, query head g*h + i belongs to kv
 * head g. The queries of a sequence belong to its last tokens: with T_q queries and T keys, query i has the position
 * i + T - T_q (bottom-right alignment). */
typedef struct nsa_spec {
  size_t size;
  nsa_op op;
  nsa_dtype dtype; /* bf16, fp16 or fp32: the io type. names.h says which tensors are fp32 or int32 instead. A gradient
                      that a call writes may be fp32 too */
  nsa_layout layout;
  int32_t query_heads; /* a multiple of kv_heads, at most 128 times it; not read by compress, rotate, their
                          gradients and invert */
  int32_t kv_heads;    /* rotate, rotate_bwd: the heads of X, also where X are queries */
  int32_t qk_dim;
  int32_t v_dim;
  int32_t window; /* tokens, >= 1, the query's own included: window, window_bwd, nsa, nsa_bwd, decode. 512 */
  float scale;    /* 0: 1/sqrt(qk_dim); at most 65536. A score, scale times the product of a query and a key, must stay
                     below 2^30. A larger score makes the outputs of its row NaN */
  /* The operators `compress`, `compress_bwd`, `cmp`, `cmp_bwd`, `select`, `nsa`, `nsa_bwd` and `decode` read these
   * fields about compression; `cmp`, `cmp_bwd` and `select` read the first two alone. */
  int32_t cmp_block;  /* tokens of a compressed block, a multiple of cmp_stride. 32 */
  int32_t cmp_stride; /* tokens from the begin of one block to that of the next. 16 */
  nsa_cmp_kind cmp_kind;
  int32_t mlp_hidden; /* NSA_CMP_MLP only: width of the hidden layer */
  nsa_activation mlp_activation;
  /* The operators `select`, `nsa` and `decode` read these fields about selection; `sel`, `sel_bwd`, `invert` and
   * `nsa_bwd` read the first two alone. */
  int32_t sel_block; /* tokens of a selection block; a multiple of cmp_stride, except for sel, sel_bwd and invert. 64 */
  int32_t sel_count; /* blocks that a group attends for a query, forced ones included; at most 128. 16 */
  int32_t init_blocks;  /* how many first blocks are always selected, >= 0. 1 */
  int32_t local_blocks; /* how many last blocks up to the query's own are always selected, >= 1. 2 */
  /* The operators `combine`, `combine_bwd`, `nsa`, `nsa_bwd` and `decode` read these three fields about gates. */
  nsa_gate gate;
  int32_t gate_per_group; /* 1: gates are [.., kv_heads, 3], 0: [.., query_heads, 3] */
  int32_t branches;       /* NSA_BRANCH_ bits; a branch that is off is not computed. NSA_BRANCHES_ALL */
  int32_t page_size;      /* decode only: tokens of a page of the cache, a multiple of sel_block; 0: no pages */
  /* The operators `rotate` and `rotate_bwd` read these three fields about rotation. */
  int32_t rotary_dims;           /* the first elements of a head, which turn; even, at most qk_dim; 0: qk_dim */
  float rotary_base;             /* pair j turns by position * rotary_base^(-2j / rotary_dims) radians. 10000 */
  nsa_rotary_style rotary_style; /* pair j is j and j + rotary_dims / 2 (half), or 2j and 2j + 1 */
  int32_t key_offset; /* dense, window, cmp: 1: each call binds K_OFFSET; 0: the keys of all sequences begin at 0. 0 */
  int32_t make_index; /* select, nsa: 1: a call may bind BLOCK_INDEX, which it makes of BLOCK_LIST; 0: it may not. 0 */
  int32_t batch_invariant; /* decode: 1: the bits of a sequence are equal in all plans and batches, whatever maxima the
                              plans have. Such a plan is slower. 0: they are equal within one plan. 0 */
  int32_t reserved[17];
} nsa_spec;

/* Upper bounds for the sizes of a plan's calls. The grids and the workspace of a plan are large enough for calls of the
 * sizes in its nsa_maxima. */
typedef struct nsa_maxima {
  size_t size;
  int64_t max_batch;
  int64_t max_tokens_q; /* queries of all sequences together; 0: max_batch * max_seqlen_q */
  int64_t max_seqlen_q; /* queries of one sequence; at most max_seqlen_k, except for compress(_bwd) and combine(_bwd) */
  int64_t max_seqlen_k; /* keys of one sequence; decode: the most that its cache will ever hold */
  int64_t reserved[4];
} nsa_maxima;

typedef enum nsa_miss_policy {
  NSA_MISS_UNSET = 0,
  NSA_MISS_FAIL = 1,       /* never compile: a miss is NSA_CACHE_MISS */
  NSA_MISS_TUNE = 2,       /* compile and measure candidates within the budget, keep the winner */
  NSA_MISS_BACKGROUND = 3, /* serve the best stored kernel, tune on a thread; the next plan gets the winner
                              (nsa_tuned_callback says when) */
  NSA_MISS_DEFAULT = 4     /* compile the candidate that the cost model ranks first; measure nothing */
} nsa_miss_policy;

typedef enum nsa_log_level {
  NSA_LOG_UNSET = 0,
  NSA_LOG_DEBUG = 1,
  NSA_LOG_INFO = 2,
  NSA_LOG_WARNING = 3,
  NSA_LOG_ERROR = 4,
  NSA_LOG_OFF = 5
} nsa_log_level;
/* A log callback is called from any thread with one line that has no newline. A log callback must not call back into
 * the engine. */
typedef void (*nsa_log_callback)(void *user, nsa_log_level level, const char *tag, const char *message);

typedef struct nsa_engine nsa_engine;

/* A function of the host that the engine calls when a new plan would have better kernels than the host's plan: under
 * the policy `background`, when the engine has tuned the kernels of a plan or compiled outdated ones again. The next
 * nsa_plan_create_with with the same spec and maxima then returns the better plan. A plan that the host holds does not
 * change.
 *
 * The callback receives tuned_user, the engine that calls it, and the spec and the maxima of the plan, which are valid
 * only during the call. Requests that share their kernels get one call, with the spec and the maxima of the first.
 *
 * The engine's tuning thread makes one call at a time, with all signals blocked. The callback may call every function
 * of this library except nsa_engine_destroy of this engine, and must not throw. nsa_engine_destroy and the end of the
 * process wait for a running callback, so their thread must not hold a lock that the callback takes.
 * docs/embedding.md says when no call comes, and what a fork changes. */
typedef void (*nsa_tuned_callback)(void *user, nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima);

/* A field of nsa_engine_options that is zero (NULL, 0) is unset and takes its default. The default is the value of the
 * environment variable that the field's comment names, which is read once when the engine opens, or else the built-in
 * value. A program with more rights than its caller (setuid) reads no environment variable.
 *
 * A host can switch off what a variable sets (docs/decisions/0006-unset-is-zero.md). A flag is NSA_ON, NSA_OFF or 0
 * (unset). A number that is NSA_OFF means no limit (decode_splits: as measured, else by rule). The text "none" means
 * that there is no such thing: no database, pack, key, pin, record, folder or fallback. A device or a library, without
 * which there is no engine, is then what is found as if its variable were not set.
 *
 * When an engine opens, it checks the paths that its options and environment variables name (docs/embedding.md has the
 * rules). The error of a bad path names the field or the variable, the path and the rule. */
enum { NSA_ON = 1, NSA_OFF = -1 };
typedef struct nsa_engine_options {
  size_t size;
  const char *device;          /* "cpu" or "cuda:N". NSA_DEVICE, else cuda:0 when usable, else cpu */
  const char *cache_path;      /* database file; ":memory:" is "none". NSA_CACHE_DIR/kernels.db, else nsa/kernels.db in
                                  $XDG_CACHE_HOME or ~/.cache */
  int32_t unused;              /* 0 */
  nsa_miss_policy miss_policy; /* NSA_MISS (default|fail|tune|background), else default */
  double tune_budget_seconds;  /* for each kernel. NSA_TUNE_BUDGET, else 30; no limit where the search is exhaustive */
  const char *compiler_path;   /* libnsa_compiler.so. NSA_COMPILER, else beside libnsa.so, or beside the file that
                                  libnsa.so is a link to */
  const char *nvrtc_path;      /* NSA_NVRTC, else searched */
  const char *template_dir;    /* templates from a folder instead of the embedded ones. Choices made with such a folder
                                  serve only while it has the same content. NSA_TEMPLATE_DIR */
  const char *force_variant;   /* only this template may serve dense, window and cmp attention ("attention",
                                  "row_attention", or one of template_dir), or only this kernel the gradient of the
                                  queries of sel ("sel_dq", "sel_dq_slots"), or decode of up to 8 new tokens of each
                                  sequence ("decode_step"). Any other name keeps decode from "decode_step".
                                  NSA_FORCE_VARIANT */
  const char *dump_dir;        /* folder for rendered templates, sources and manifests. NSA_DUMP_DIR */
  int32_t cpu_threads;         /* worker threads of the CPU device. NSA_CPU_THREADS, else all cores */
  int32_t compile_threads;     /* NSA_COMPILE_THREADS, else all cores */
  nsa_log_callback log;        /* NULL: warnings and errors go to stderr */
  void *log_user;
  nsa_log_level log_level;  /* the least level that is told. NSA_LOG (debug|info|warning|error|off), else warning */
  const char *cpu_features; /* "x86-64-v3" or "x86-64-v4": limits the CPU device's code. NSA_CPU_FEATURES */
  /* Paths of packs (read-only files of kernels), separated by ':'. A kernel is looked up in the database, then in these
   * packs in their order, and then in every *.nsapack of ../share/nsa/packs beside libnsa.so's folder. NSA_CACHE_PACKS
   */
  const char *cache_packs;
  const char *cache_keys; /* files of public keys, separated by ':', whose signatures of packs count. A pack without
                             such a signature gives a warning. NSA_CACHE_KEYS */
  int32_t
      require_signature; /* flag: a pack without a signature by one of cache_keys is not used. NSA_REQUIRE_SIGNATURE */
  int64_t cache_max_bytes; /* limit of the database: storing a kernel removes the least recently used kernels that could
                              be tuned and were not. NSA_CACHE_MAX_BYTES, else no limit */
  const char *fallbacks;   /* what may serve a problem that has no kernel of its own: "all", "exact" or "none", or a
                              comma list of nearest, model, architecture, compiled, cpu. Where a step that is left out
                              would be needed, the plan is an error (docs/deploying_without_a_compiler.md). NSA_FALLBACKS,
                              else all */
  const char *pin_path;    /* a pack or database, never written, which is the only source of choices. Engines with the
                              same file choose the same kernels. Nothing is tuned, and miss_policy must be fail or
                              default. NSA_PIN */
  const char *record_path; /* a file to which the engine appends every plan that it makes or has no kernel for. `nsa
                              tune` tunes such a file (docs/tuning.md). The file's folder must exist. NSA_RECORD */
  int32_t log_limit;       /* warnings of one tag in a minute. NSA_LOG_LIMIT, else 20 */
  int32_t uniform_gate;    /* debugging flag: gives each branch the same weight, whatever the gates. NSA_UNIFORM_GATE */
  const char *force_branch;  /* debugging: "cmp", "sel" or "win": the gate of this branch is 1, the others' are 0.
                                NSA_FORCE_BRANCH */
  int32_t tune_exhaustive;   /* flag: tuning compiles and measures every candidate. NSA_TUNE_EXHAUSTIVE */
  int32_t ignore_thresholds; /* flag: measured thresholds decide nothing (docs/tuning.md). NSA_IGNORE_THRESHOLDS */
  int32_t decode_splits;     /* 1 to 16: at most how many programs share the keys of a query of decode in each branch.
                                NSA_DECODE_SPLITS, else as measured, else by rule (docs/operators.md) */
  int32_t flags;             /* 0 */
  nsa_tuned_callback tuned;  /* NULL: no callback */
  void *tuned_user;
  int64_t reserved[8];
} nsa_engine_options;

/* A tensor in device memory (host memory for the CPU device). 1 <= rank <= 5. */
typedef struct nsa_tensor {
  size_t size;
  void *data;
  nsa_dtype dtype;
  int32_t rank;
  int64_t shape[5];
  int64_t strides[5]; /* elements; the last dimension of q, k, v, out must be contiguous */
  int64_t accumulate; /* 1: a gradient is added, in fp32, to what the tensor holds; 0: it replaces that. A
                         tensor that the call only reads, a result that is no gradient, and D_O_* have 0 */
  int64_t reserved[3];
} nsa_tensor;

#include "names.h"

typedef struct nsa_binding {
  nsa_name name;
  const nsa_tensor *tensor;
} nsa_binding;

typedef struct nsa_plan nsa_plan;

/* Gives a zeroed struct whose field `size` is set: nsa_spec spec = NSA_INIT(nsa_spec); */
#ifdef __cplusplus
#define NSA_INIT(type) nsa_init_sized<type>()
#else
#define NSA_INIT(type) ((type){.size = sizeof(type)})
#endif

/* The version, such as "0.2.0", and the revision that the library was built from: constants of the library. */
NSA_API uint32_t nsa_abi_version(void) NSA_NOEXCEPT;
NSA_API const char *nsa_version(void) NSA_NOEXCEPT;
NSA_API const char *nsa_source_id(void) NSA_NOEXCEPT;
NSA_API const char *nsa_status_name(nsa_status status) NSA_NOEXCEPT;
NSA_API nsa_status nsa_error_get_info(nsa_error_info *info, nsa_error *error) NSA_NOEXCEPT;
/* Frees a JSON text. NULL is allowed. */
NSA_API void nsa_free(void *text) NSA_NOEXCEPT;

/* The functions whose names end in _sized write a struct, or several, whose size the host passes. The macro beside each
 * of them passes the size of the host's own header. */

/* Sets the defaults that the comments of nsa_spec name, and the dtype bf16. All other fields become zero. */
NSA_API void nsa_spec_init_sized(nsa_spec *spec, size_t spec_bytes) NSA_NOEXCEPT;
#define nsa_spec_init(spec) nsa_spec_init_sized(spec, sizeof(nsa_spec))

/* Fills *tensor with a row-major (contiguous) tensor of `rank` dimensions, and returns `tensor`. A rank that is not
 * from 1 to 5 is refused by the function that reads the tensor. The rank becomes 0 where the number of elements does
 * not fit 63 bits. In C, NSA_ROWS(data, dtype, dimensions ...) makes such a tensor and points to it; the tensor lives
 * as long as the block in which NSA_ROWS stands. */
NSA_API nsa_tensor *nsa_tensor_rows_sized(nsa_tensor *tensor, size_t tensor_bytes, void *data, nsa_dtype dtype,
                                          int32_t rank, const int64_t *shape) NSA_NOEXCEPT;
#define nsa_tensor_rows(tensor, ...) nsa_tensor_rows_sized(tensor, sizeof(nsa_tensor), __VA_ARGS__)
#define NSA_ROWS(data, dtype, ...)                                                                                     \
  nsa_tensor_rows(&(nsa_tensor){0}, data, dtype, (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),        \
                  (int64_t[]){__VA_ARGS__})

/* Opens the device. nsa_engine_create opens neither the compiler library nor NVRTC, and the first
 * nsa_plan_create_with opens the database of kernels. `options` may be NULL. */
NSA_API nsa_status nsa_engine_create(const nsa_engine_options *options, nsa_engine **engine,
                                     nsa_error *error) NSA_NOEXCEPT;
NSA_API void nsa_engine_destroy(nsa_engine *engine) NSA_NOEXCEPT;

/* Options of one plan. */
typedef struct nsa_plan_options {
  size_t size;
  int32_t compare; /* 1: each run compares the results of its kernels with the results of the kernels that define their
                      operators (docs/embedding.md). It leaves out sequences, append, scores, rank, ascend, the kernels
                      of inverses (index_*), of sums (sum, sum_*, sums, zero_weights) and of compress_bwd (dz, dx, dw,
                      db), and in decode compress and each kernel that makes only a part of a result. Such a run waits
                      for the device and must not be captured, and its workspace is larger */
  int32_t flags;   /* 0 */
  int64_t reserved[6];
} nsa_plan_options;

/* Finds or makes the kernels of a spec and loads them. nsa_plan_create_with looks for kernels in memory, then in the
 * database and the packs, and then follows the miss policy. When another process is making the same kernel,
 * nsa_plan_create_with waits for that kernel and takes it. nsa_plan_create_with waits for another process at most a
 * minute; under the policy `tune` the limit is a minute and twice the tuning budget. If `stream` captures a graph and
 * the plan is not in memory, nsa_plan_create_with returns the error NSA_CAPTURING, which names the problem key.
 * `options` may be NULL. */
NSA_API nsa_status nsa_plan_create_with(nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima,
                                        const nsa_plan_options *options, void *stream, nsa_plan **plan,
                                        nsa_error *error) NSA_NOEXCEPT;
NSA_API void nsa_plan_destroy(nsa_plan *plan) NSA_NOEXCEPT;

/* Sets *bytes to the size of the workspace that nsa_run needs, in the same memory as the tensors. If the size is 0,
 * pass NULL as the workspace. The workspace must be aligned to 256 bytes, and each of several runs that may overlap
 * needs its own workspace. On the CPU the calling thread uses the workspace as its scratch memory. */
NSA_API nsa_status nsa_plan_workspace_size(const nsa_plan *plan, size_t *bytes, nsa_error *error) NSA_NOEXCEPT;

/* Launches the kernels of the operator on `stream`. nsa_run checks the tensors on the host; a kernel checks the
 * sequence lengths in device memory. For a sequence whose length breaks a rule, the kernels write nothing and set the
 * plan's status word. */
NSA_API nsa_status nsa_run(const nsa_plan *plan, const nsa_binding *bindings, size_t binding_count, void *workspace,
                           size_t workspace_bytes, void *stream, nsa_error *error) NSA_NOEXCEPT;

/* The time of one part of a run, such as the kernel `compress` of a run of nsa. */
typedef struct nsa_part_time {
  char name[24];       /* sequences, append, compress, cmp, scores, rank, select, ascend, sel, win, combine, step;
                          of gradients gates, deltas, dq, dq_cmp, dq_sel, dq_slots, dq_win, dkv, dkv_cmp, dkv_sel,
                          dkv_win, sum, sum_cmp, sum_slots, dz, dx, dw, db, sums, zero_queries, zero_weights; where
                          lists are inverted index_lengths, index_counts, index_starts, index_fill, index_check,
                          index_slots, index_ranges; of other operators their own name */
  int32_t launches;    /* nsa goes through long sequences in chunks */
  double milliseconds; /* sum over the launches of the part, each from the end of the launch before to its own end; on a
                          GPU by events on `stream` */
} nsa_part_time;

#define NSA_MOST_PARTS 64 /* no run has more parts */

/* nsa_run_timed is nsa_run, but waits for the result, and returns NSA_CAPTURING while `stream` captures. Fills up to
 * `capacity` entries of `times`, one for each part, in the order in which the parts were first launched. Sets *count to
 * the number of parts that the run has. `time_bytes` is the distance from one entry to the next. */
NSA_API nsa_status nsa_run_timed_sized(const nsa_plan *plan, const nsa_binding *bindings, size_t binding_count,
                                       void *workspace, size_t workspace_bytes, void *stream, nsa_part_time *times,
                                       size_t time_bytes, size_t capacity, size_t *count,
                                       nsa_error *error) NSA_NOEXCEPT;
#define nsa_run_timed(plan, bindings, binding_count, workspace, workspace_bytes, stream, times, capacity, count,       \
                      error)                                                                                           \
  nsa_run_timed_sized(plan, bindings, binding_count, workspace, workspace_bytes, stream, times, sizeof(nsa_part_time), \
                      capacity, count, error)

/* Waits for `stream`, then reads and clears the plan's status word. Returns NSA_OK, or NSA_DEVICE_ERROR with the
 * violated rule in `error`, or NSA_CAPTURING while `stream` captures. On the CPU nsa_run itself returns the error of a
 * violated rule. All runs of a plan on all streams share the plan's status word. The status word keeps the first error
 * since it was cleared. */
NSA_API nsa_status nsa_plan_status(const nsa_plan *plan, void *stream, nsa_error *error) NSA_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */

template <typename T> inline T nsa_init_sized() {
  T value{};
  value.size = sizeof(T);
  return value;
}
#endif

#include "convert.h"
#include "program.h"
#include "report.h"
#include "tune.h"
#endif
