/* NSA Runtime: native sparse attention without Python and without PyTorch. The C ABI.
 *
 * This header is the documentation; what is not in it is not API.
 *
 * Conventions
 *  - Every input struct begins with `size`, which the caller sets to sizeof(struct). Reserved fields
 *    must be zero. NSA_INIT(type) gives a zeroed struct with its size set.
 *  - Handles are opaque. Destroy functions accept NULL. No function keeps a pointer to its arguments
 *    (a plan does not keep the spec, a run does not keep the tensors).
 *  - A function returns nsa_status and fills the caller's `nsa_error` (may be NULL) on failure.
 *  - Shapes are in elements; strides are in elements; workspace sizes are in bytes; times are in
 *    milliseconds. Token positions start at 0. Log-sum-exp is the natural logarithm.
 *  - `stream` is a CUstream (or cudaStream_t) of the engine's device, NULL for the default stream.
 *    A CPU engine ignores it and `nsa_run` returns when the result is there.
 *
 * Threads: an engine may be used by many threads at once. A plan is immutable and may be run by many
 * threads at once, each with its own workspace. Handles must outlive their use: a plan is in use until the work of its
 * runs is done, and by a graph that captured one, as are tensors and workspace, with each launch. An engine may be
 * destroyed before its plans.
 *
 * The launch path: nsa_run allocates nothing, takes no lock, reads no file and no environment, formats no
 * text (but on an error) and never synchronises; it may be captured into a CUDA graph.
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

#define NSA_ABI_VERSION 0 /* raised on a break; 0 until the backward pass lands */

typedef enum nsa_status {
  NSA_OK = 0,
  NSA_INVALID_ARGUMENT = 1, /* a spec, tensor, option or file breaks a rule */
  NSA_CACHE_MISS = 2,       /* policy `fail`, and no stored kernel serves the spec */
  NSA_UNAVAILABLE = 3,      /* no driver, no NVRTC, no compiler library, driver too old */
  NSA_UNSUPPORTED = 4,      /* legal, but nothing here can run it */
  NSA_COMPILE_FAILED = 5,   /* a template, NVRTC or LLVM refused */
  NSA_DEVICE_ERROR = 6,     /* the driver returned an error, or the device reported a bad input */
  NSA_IO_ERROR = 7,
  NSA_CAPTURING = 8, /* the stream captures and the plan is not in memory */
  NSA_OUT_OF_MEMORY = 9,
  NSA_INTERNAL = 10
} nsa_status;

/* Owned by the caller. Texts are NUL-terminated and cut when too long. */
typedef struct nsa_error {
  nsa_status code;
  char field[64];    /* the field at fault, e.g. "window"; "" when it is none */
  char value[128];   /* its value */
  char rule[256];    /* the rule it broke */
  char message[512]; /* one sentence, complete without the others */
  char hint[384];    /* what to do; "" when there is nothing to say */
} nsa_error;

typedef enum nsa_dtype { NSA_BF16 = 0, NSA_FP16 = 1, NSA_FP32 = 2, NSA_INT32 = 3 } nsa_dtype;

/* Operators, named as in the specification. */
typedef enum nsa_op {
  NSA_OP_DENSE = 0,    /* causal attention over all keys up to the query's own position */
  NSA_OP_WINDOW = 1,   /* over the last `window` keys, the own one included */
  NSA_OP_COMPRESS = 2, /* blocks of keys and values to one row each */
  NSA_OP_CMP = 3,      /* attention over the compressed blocks that end at or before the query */
  NSA_OP_SELECT = 4,   /* the blocks that each query and group attends */
  NSA_OP_SEL = 5,      /* attention over listed blocks */
  NSA_OP_COMBINE = 6,  /* the gated sum of the branches */
  NSA_OP_NSA = 7,      /* all of that */
  NSA_OP_DECODE = 8    /* new tokens into a cache, and nsa of their queries over it */
} nsa_op;

/* How a block of keys or values becomes one row. `x` is the block's tokens, `pe` an optional embedding of their places.
 *   mean:   the mean of x
 *   linear: sum_i (x[i] + pe[i]) W[i] + b
 *   mlp:    act((concat_i (x[i] + pe[i])) W1 + b1) W2 + b2 */
typedef enum nsa_cmp_kind { NSA_CMP_MEAN = 0, NSA_CMP_LINEAR = 1, NSA_CMP_MLP = 2 } nsa_cmp_kind;
typedef enum nsa_activation { NSA_RELU = 0, NSA_GELU = 1 /* with erf */, NSA_SILU = 2 } nsa_activation;

/* What gates hold: the factors, or logits to take the sigmoid or, over the three branches, the softmax of. */
typedef enum nsa_gate { NSA_GATE_VALUE = 0, NSA_GATE_SIGMOID = 1, NSA_GATE_SOFTMAX = 2 } nsa_gate;

/* Bits of nsa_spec.branches. */
enum { NSA_BRANCH_CMP = 1, NSA_BRANCH_SEL = 2, NSA_BRANCH_WIN = 4, NSA_BRANCHES_ALL = 7 };

typedef enum nsa_layout {
  NSA_LAYOUT_DENSE = 0, /* [batch, time, heads, dim] */
  NSA_LAYOUT_PACKED = 1 /* [total, heads, dim] with cu_seqlens_q / cu_seqlens_k, int32 [batch+1] */
} nsa_layout;

/* What is computed; an operator reads the fields it needs and ignores the rest. nsa_spec_init sets those which have a
 * default. Query head g*h + i belongs to kv head g, h = query_heads / kv_heads. Queries sit at the
 * end of their keys: query i of T_q has position T - T_q + i (bottom-right alignment). */
typedef struct nsa_spec {
  size_t size;
  nsa_op op;
  nsa_dtype dtype; /* of q, k, v and out: bf16, fp16 or fp32 */
  nsa_layout layout;
  int32_t query_heads; /* a multiple of kv_heads, at most 128 times it; not read by compress */
  int32_t kv_heads;
  int32_t qk_dim;
  int32_t v_dim;
  int32_t window; /* tokens, >= 1, the query's own included: window, nsa, decode. 512 */
  float scale;    /* 0: 1/sqrt(qk_dim) */
  /* Compression: compress, cmp, select, nsa, decode. */
  int32_t cmp_block;  /* tokens of a compressed block, a multiple of cmp_stride. 32 */
  int32_t cmp_stride; /* tokens between the begins of two. 16 */
  nsa_cmp_kind cmp_kind;
  int32_t mlp_hidden; /* mlp: width of the hidden layer */
  nsa_activation mlp_activation;
  /* Selection: select, sel, nsa, decode. */
  int32_t sel_block;    /* tokens of a selected block; where it is compressed too, a multiple of cmp_stride. 64 */
  int32_t sel_count;    /* blocks that a query and group attend, forced ones included; at most 64. 16 */
  int32_t init_blocks;  /* forced: the first ones, >= 0. 1 */
  int32_t local_blocks; /* forced: the last ones up to the query's own, >= 1. 2 */
  /* Gates: combine, nsa, decode. */
  nsa_gate gate;
  int32_t gate_per_group; /* 1: gates are [.., kv_heads, 3], 0: [.., query_heads, 3] */
  int32_t branches;       /* NSA_BRANCH_ bits; what is off is not computed. NSA_BRANCHES_ALL */
  int32_t page_size;      /* decode: tokens of a cache's page, a multiple of sel_block; 0: no pages */
  int32_t reserved[7];
} nsa_spec;

/* Upper bounds that the plan's grid and workspace are made for. */
typedef struct nsa_maxima {
  size_t size;
  int64_t max_batch;
  int64_t max_tokens_q; /* queries of all sequences together; 0: max_batch * max_seqlen_q */
  int64_t max_seqlen_q; /* queries of one sequence */
  int64_t max_seqlen_k; /* keys of one sequence; of decode, in its cache at any time to come */
  int64_t reserved[4];
} nsa_maxima;

typedef enum nsa_miss_policy {
  NSA_MISS_DEFAULT = 0,   /* compile the best guess; measure nothing */
  NSA_MISS_FAIL = 1,      /* never compile: a miss is NSA_CACHE_MISS */
  NSA_MISS_TUNE = 2,      /* compile and measure candidates within the budget, keep the winner */
  NSA_MISS_BACKGROUND = 3 /* serve the best that is there, tune on a thread; the next plan gets the winner */
} nsa_miss_policy;

typedef enum nsa_log_level {
  NSA_LOG_DEBUG = 0,
  NSA_LOG_INFO = 1,
  NSA_LOG_WARNING = 2,
  NSA_LOG_ERROR = 3,
  NSA_LOG_OFF = 4
} nsa_log_level;
/* Called from any thread, one line without a newline. Must not call back into the engine. */
typedef void (*nsa_log_callback)(void *user, nsa_log_level level, const char *tag, const char *message);

/* A zeroed field (NULL, 0) takes its default: the environment variable named beside it, read once when
 * the engine opens, else the built-in value. A program with more rights than its caller (setuid) reads none. */
typedef struct nsa_engine_options {
  size_t size;
  const char *device;      /* "cpu" or "cuda:N". NSA_DEVICE, else cuda:0 when usable, else cpu */
  const char *cache_path;  /* database file, ":memory:" for none. NSA_CACHE_DIR/kernels.db, else $XDG_CACHE_HOME or
                              ~/.cache, /nsa/kernels.db */
  int32_t miss_policy_set; /* 1: `miss_policy` counts; 0: NSA_MISS (default|fail|tune|background), else
                              default */
  nsa_miss_policy miss_policy;
  double tune_budget_seconds; /* of each kernel. NSA_TUNE_BUDGET, else 30; without a limit where the search is
                                 exhaustive */
  const char *compiler_path;  /* libnsa_compiler.so. NSA_COMPILER, else beside libnsa.so */
  const char *nvrtc_path;     /* NSA_NVRTC, else searched */
  const char *template_dir; /* templates from a folder instead of the embedded ones. Choices made with it are kept apart
                               and are made anew when the folder's content changes. NSA_TEMPLATE_DIR */
  const char *force_variant; /* only this template may serve dense, window and cmp attention ("attention",
                                "row_attention"). NSA_FORCE_VARIANT */
  const char *dump_dir;      /* rendered templates, sources and manifests are written here. NSA_DUMP_DIR */
  int32_t cpu_threads;       /* worker threads of the CPU device. NSA_CPU_THREADS, else all cores */
  int32_t compile_threads;   /* NSA_COMPILE_THREADS, else all cores */
  nsa_log_callback log;      /* NULL: warnings and errors go to stderr */
  void *log_user;
  nsa_log_level log_level;  /* with a callback: the least level passed on. NSA_LOG for stderr */
  const char *cpu_features; /* "", "x86-64-v3" or "x86-64-v4": limits the CPU device's code. NSA_CPU_FEATURES */
  /* Packs: read-only files of kernels beneath the database, in the order in which they are asked, separated by ':'.
     NSA_CACHE_PACKS. Behind them, every *.nsapack in ../share/nsa/packs of the folder of libnsa.so; "none": no pack at
     all */
  const char *cache_packs;
  const char *cache_keys; /* files of public keys, separated by ':', whose signature of a pack counts. NSA_CACHE_KEYS */
  int32_t require_signature; /* 1: packs that none of these keys has signed are not used. NSA_REQUIRE_SIGNATURE */
  int64_t cache_max_bytes; /* of the database: storing a kernel makes room by removing the least recently used ones that
                              nobody tuned. NSA_CACHE_MAX_BYTES, else no limit */
  const char *fallbacks;   /* what may serve a problem that has no kernel of its own: "all", "exact" for nothing, or a
                              comma list of nearest, model, architecture, compiled, cpu (docs/embedding.md). What is left
                              out is an error instead. NSA_FALLBACKS, else all */
  const char *pin_path;    /* a pack or database, never written, from which alone choices come: engines with one file
                              choose the same. Nothing is tuned, and miss_policy must be fail or default. NSA_PIN;
                              "none": no file, whatever that says */
  int32_t log_limit;       /* warnings of one tag in a minute, -1 for no limit. NSA_LOG_LIMIT, else 20 */
  int32_t uniform_gate;    /* debugging: 1 gives each branch the same weight, whatever the gates. NSA_UNIFORM_GATE */
  const char *force_branch; /* debugging: "cmp", "sel" or "win" has the gate 1, the others 0. NSA_FORCE_BRANCH */
  int32_t tune_exhaustive;  /* 1: tuning compiles and measures every candidate, none is left out. NSA_TUNE_EXHAUSTIVE */
  int32_t ignore_thresholds; /* 1: measured thresholds decide nothing (docs/tuning.md). NSA_IGNORE_THRESHOLDS */
  int32_t decode_splits; /* 1 to 16: so many programs at most share the keys of a query of decode in each branch; 0: as
                            measured, else by rule (docs/operators.md). NSA_DECODE_SPLITS */
  int32_t flags;         /* 0 */
  int64_t reserved[4];
} nsa_engine_options;

/* A tensor in device memory (host memory for the CPU device). 1 <= rank <= 5. */
typedef struct nsa_tensor {
  size_t size;
  void *data;
  nsa_dtype dtype;
  int32_t rank;
  int64_t shape[5];
  int64_t strides[5]; /* elements; the last dimension of q, k, v, out must be contiguous */
} nsa_tensor;

/* Tensor names of the operators. `..` is [batch, time] in the dense layout and [total] in the packed one, where all
 * operators but combine take CU_SEQLENS_Q and/or CU_SEQLENS_K, int32 [batch + 1] (one stands for both). `else` names
 * what serves when the first is not bound, so one K and V may serve all branches. Brackets mark what may be left out.
 *
 *   dense, window  Q, K_WIN else K, V_WIN else V            -> OUT, [LSE], [READS]
 *   compress       K_CMP else K, V_CMP else V, weights      -> K_COMP, V_COMP
 *   cmp            Q_CMP else Q, K_COMP, V_COMP             -> OUT, [LSE], [READS]
 *   select         Q_CMP else Q, K_COMP, [LSE of cmp]       -> BLOCK_LIST
 *   sel            Q, K_SEL else K, V_SEL else V, BLOCK_LIST -> OUT, [LSE], [READS]
 *   combine        O_CMP, O_SEL, O_WIN (of the branches that are on), GATES -> OUT
 *   nsa            Q, Q_CMP else Q, K_* else K, V_* else V, weights, GATES
 *                  -> OUT, [O_*], [LSE_*], [BLOCK_LIST], [K_COMP], [V_COMP], [READS]
 *   decode         as nsa, of the new tokens alone; CACHE_SEQLENS, [BLOCK_TABLE], K_SEL_CACHE else K_CACHE,
 *                  K_WIN_CACHE else K_CACHE, V_* alike, K_COMP_CACHE, V_COMP_CACHE, K_RAW, V_RAW, all but the table
 *                  read and written
 *                  -> OUT, [O_*], [LSE_*], [BLOCK_LIST], [READS]
 *
 * Shapes: Q [.., query_heads, qk_dim]; K* [.., kv_heads, qk_dim]; V* [.., kv_heads, v_dim]; OUT, O_* [.., query_heads,
 * v_dim]; LSE* fp32 [.., query_heads]; BLOCK_LIST int32 [.., kv_heads, sel_count], ascending block numbers of the
 * sequence, -1 only as a tail; GATES [.., heads, 3] in the order cmp, sel, win; READS int32 [.., kv_heads]: tokens and
 * compressed blocks that the query's group attended. K_COMP, V_COMP [.., kv_heads, dim] with a row per compressed block
 * in the place of time: N_c(T) = T < cmp_block ? 0 : (T - cmp_block) / cmp_stride + 1 rows of a sequence of T tokens;
 * those of packed sequences follow each other without gaps, in at least as many rows. In the dense layout cmp and
 * select take T to be the number of queries; a cached prefix needs the packed layout there.
 *
 * The cache of decode. Each call brings T_q = T >= 1 new tokens of each sequence (prompts, chunks of prompts, single
 * tokens; in the packed layout as CU_SEQLENS_Q says, also none), puts them behind those that are there, compresses the
 * blocks that become whole, adds to CACHE_SEQLENS and then lets the new queries attend as nsa would. Nothing but device
 * memory holds the lengths, so a captured call serves every later step. CACHE_SEQLENS int32 [batch]: tokens in the
 * cache, 0 at first. K_*CACHE, V_*CACHE [batch, room, kv_heads, dim], K_COMP_CACHE, V_COMP_CACHE [batch, at least
 * N_c(room), kv_heads, dim]; with a page_size [pages, page_size, kv_heads, dim] and [pages, page_size / cmp_stride,
 * kv_heads, dim], where BLOCK_TABLE int32 [batch, pages of a sequence] names the page of a sequence's tokens
 * i*page_size and on, and that of the compressed blocks that begin there. Entries behind a sequence's end are not read.
 * K_RAW, V_RAW [batch, cmp_block, kv_heads, dim]: the last rows of what is compressed, token t in row t mod cmp_block.
 * What was never written is never read. Where sel and win share a cache they must share the new tokens. A sequence
 * whose new tokens have no room is left as it stands and reported (nsa_run on the CPU, nsa_plan_status on a GPU).
 *
 * Weights, of the operator's dtype, for keys (D = qk_dim) and values (_V, D = v_dim), shared by all heads:
 *   linear  W_K [cmp_block, D, D], [PE_K] [cmp_block, D], [B_K] [D]
 *   mlp     W1_K [cmp_block * D, mlp_hidden], [B1_K] [mlp_hidden], W2_K [mlp_hidden, D], [B2_K] [D], [PE_K] */
typedef enum nsa_name {
  NSA_Q = 0,
  NSA_K = 1,
  NSA_V = 2,
  NSA_K_WIN = 3,
  NSA_V_WIN = 4,
  NSA_OUT = 5,
  NSA_LSE = 6,
  NSA_CU_SEQLENS_Q = 7,
  NSA_CU_SEQLENS_K = 8,
  NSA_Q_CMP = 9,
  NSA_K_CMP = 10,
  NSA_V_CMP = 11,
  NSA_K_SEL = 12,
  NSA_V_SEL = 13,
  NSA_K_COMP = 14,
  NSA_V_COMP = 15,
  NSA_BLOCK_LIST = 16,
  NSA_GATES = 17,
  NSA_O_CMP = 18,
  NSA_O_SEL = 19,
  NSA_O_WIN = 20,
  NSA_LSE_CMP = 21,
  NSA_LSE_SEL = 22,
  NSA_LSE_WIN = 23,
  NSA_READS = 24,
  NSA_PE_K = 25,
  NSA_PE_V = 26,
  NSA_W_K = 27,
  NSA_W_V = 28,
  NSA_B_K = 29,
  NSA_B_V = 30,
  NSA_W1_K = 31,
  NSA_W1_V = 32,
  NSA_B1_K = 33,
  NSA_B1_V = 34,
  NSA_W2_K = 35,
  NSA_W2_V = 36,
  NSA_B2_K = 37,
  NSA_B2_V = 38,
  NSA_K_CACHE = 39,
  NSA_V_CACHE = 40,
  NSA_K_SEL_CACHE = 41,
  NSA_V_SEL_CACHE = 42,
  NSA_K_WIN_CACHE = 43,
  NSA_V_WIN_CACHE = 44,
  NSA_K_COMP_CACHE = 45,
  NSA_V_COMP_CACHE = 46,
  NSA_K_RAW = 47,
  NSA_V_RAW = 48,
  NSA_BLOCK_TABLE = 49,
  NSA_CACHE_SEQLENS = 50
} nsa_name;
enum { NSA_NAMES = 51 };

typedef struct nsa_binding {
  nsa_name name;
  const nsa_tensor *tensor;
} nsa_binding;

typedef struct nsa_engine nsa_engine;
typedef struct nsa_plan nsa_plan;

/* Zeroed struct with its size set: nsa_spec spec = NSA_INIT(nsa_spec); */
#ifdef __cplusplus
#define NSA_INIT(type) nsa_init_sized<type>()
#else
#define NSA_INIT(type) ((type){.size = sizeof(type)})
#endif

/* "0.1.0", and the revision the library was built from. */
NSA_API uint32_t nsa_abi_version(void) NSA_NOEXCEPT;
NSA_API const char *nsa_version(void) NSA_NOEXCEPT;
NSA_API const char *nsa_source_id(void) NSA_NOEXCEPT;
NSA_API const char *nsa_status_name(nsa_status status) NSA_NOEXCEPT;

/* Fills in the defaults that the fields of nsa_spec name, bf16, and all other fields zero. */
NSA_API void nsa_spec_init(nsa_spec *spec) NSA_NOEXCEPT;

/* Opens the device and nothing else: no compiler, no NVRTC, and the cache with the first plan. options may be NULL. */
NSA_API nsa_status nsa_engine_create(const nsa_engine_options *options, nsa_engine **engine,
                                     nsa_error *error) NSA_NOEXCEPT;
NSA_API void nsa_engine_destroy(nsa_engine *engine) NSA_NOEXCEPT;

/* Finds or makes the kernels of a spec and loads them. Looks in memory, then in the database, then follows
 * the miss policy; what another process is making at that moment it waits for and takes, for a minute at most (`tune`:
 * and twice its budget). While `stream` captures a graph it succeeds only from memory (else NSA_CAPTURING names the
 * key). */
NSA_API nsa_status nsa_plan_create(nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima, void *stream,
                                   nsa_plan **plan, nsa_error *error) NSA_NOEXCEPT;
NSA_API void nsa_plan_destroy(nsa_plan *plan) NSA_NOEXCEPT;

/* What a plan does beside running. */
typedef struct nsa_plan_options {
  size_t size;
  int32_t
      compare;   /* 1: each run launches every kernel that had a choice once more, and the kernel that defines its
                    operator (the tile program, compiled with its first configuration), and compares what the two
                    wrote. It waits, needs more workspace (nsa_plan_workspace_size counts it) and may not be captured */
  int32_t flags; /* 0 */
  int64_t reserved[6];
} nsa_plan_options;
/* nsa_plan_create with options; NULL: none. */
NSA_API nsa_status nsa_plan_create_with(nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima,
                                        const nsa_plan_options *options, void *stream, nsa_plan **plan,
                                        nsa_error *error) NSA_NOEXCEPT;
/* What the last run of a plan that compares has found, freed with nsa_free: JSON with `parts`, each with its `kernel`,
 * its `definition` and max_abs, mean_abs and relative_rms over the elements that are finite in both, unequal_nan and
 * unequal_inf over the others, or of selection how many lists differ. Parts without choices, and compression into a
 * cache, are `compared: false`. */
NSA_API nsa_status nsa_plan_compare_report(const nsa_plan *plan, char **json, nsa_error *error) NSA_NOEXCEPT;

/* Bytes of workspace that nsa_run needs (0: pass NULL), in the memory that the tensors are in. The buffer must be
 * 256-byte aligned; runs that may overlap need one each. On the CPU it is the calling thread's scratch. */
NSA_API nsa_status nsa_plan_workspace_size(const nsa_plan *plan, size_t *bytes, nsa_error *error) NSA_NOEXCEPT;

/* Enqueues the operator. Tensors are checked on the host; lengths in device memory are checked by the
 * kernel, which then writes nothing for that sequence and sets the plan's status word. */
NSA_API nsa_status nsa_run(const nsa_plan *plan, const nsa_binding *bindings, size_t binding_count, void *workspace,
                           size_t workspace_bytes, void *stream, nsa_error *error) NSA_NOEXCEPT;

/* Where a run's time goes. */
typedef struct nsa_part_time {
  char name[24];       /* sequences, append, compress, cmp, scores, rank, select, ascend, sel, win, combine; of other
                          operators their own name */
  int32_t launches;    /* nsa goes through long sequences in chunks */
  double milliseconds; /* of all of them, between the ends of launches: on a GPU by events on `stream` */
} nsa_part_time;

/* As nsa_run, and waits (NSA_CAPTURING while `stream` captures): fills up to `capacity` entries of `times` in the order
 * of the first launches; *count is how many there are. */
NSA_API nsa_status nsa_run_timed(const nsa_plan *plan, const nsa_binding *bindings, size_t binding_count,
                                 void *workspace, size_t workspace_bytes, void *stream, nsa_part_time *times,
                                 size_t capacity, size_t *count, nsa_error *error) NSA_NOEXCEPT;

/* Waits for `stream` (NSA_CAPTURING while it captures), reads and clears the plan's status word. NSA_OK, or
 * NSA_DEVICE_ERROR with the violated rule in `error`. On the CPU nsa_run has reported it already. The word is the
 * plan's, not the stream's: the first report since it was cleared, of any run, is told once. */
NSA_API nsa_status nsa_plan_status(nsa_plan *plan, void *stream, nsa_error *error) NSA_NOEXCEPT;

/* A JSON text that says what the plan runs: `operator`, `problem`, `device`, `source` (memory, database, compiled),
 * `tuned`, `fallbacks` (what was tried before and why it did not serve), `milliseconds` of lookup, render, compile,
 * tune and load, `launches` in their order, with operator, template, config, content, target, grid. Valid as long as
 * the plan. */
NSA_API const char *nsa_plan_describe(const nsa_plan *plan) NSA_NOEXCEPT;

/* What would run for a spec, without compiling or storing anything; JSON, freed with nsa_free. For an operator of
 * several tuned kernels `kernels`, in the order of their launches; so does nsa_tune. */
NSA_API nsa_status nsa_explain(nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima, char **json,
                               nsa_error *error) NSA_NOEXCEPT;

/* Tunes one spec now, whatever is stored, and stores the result; an error under the policy `fail`, which opens no
 * compiler, and where a table is pinned. JSON report, freed with nsa_free. Its `store_trouble` says why the winner was
 * not stored ("" when it was): this engine uses it, the next process will not. Its `tuned` is false when the budget
 * ended before anything was measured; a winner that was stored then stays. When another thread or process is tuning the
 * same, waits and takes its result (`tuned_elsewhere`). */
NSA_API nsa_status nsa_tune(nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima, char **json,
                            nsa_error *error) NSA_NOEXCEPT;

/* The same for one of the spec's kernels, named by its problem key, within `budget_seconds` (0: the engine's). A kernel
 * without choices is found or made; the report is then {"kernels": []}. For who tunes many specs that share kernels;
 * plans in memory keep what they have. */
NSA_API nsa_status nsa_tune_kernel(nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima,
                                   const char *problem, double budget_seconds, char **json,
                                   nsa_error *error) NSA_NOEXCEPT;

/* Counters since the engine opened. A host that was built with an earlier header gets the fields it knows. */
typedef struct nsa_stats {
  size_t size;
  uint64_t plans_from_memory, plans_from_database, plans_compiled, plans_failed;
  uint64_t kernels_compiled, kernels_measured, kernels_rejected, kernels_loaded;
  uint64_t cache_damaged_rows, cache_failed_writes;
  uint64_t runs;
  uint64_t cache_pack_hits, cache_refused_packs; /* kernels served from packs; packs that are not used */
  /* Kernels that a step of the fallback ladder served; fallback_cpu: 1 where the CPU took the place of a GPU. */
  uint64_t fallback_nearest, fallback_model, fallback_architecture, fallback_compiled, fallback_cpu;
  /* Plans whose tuning waits or is going on, has ended, has failed. */
  uint64_t background_pending, background_done, background_failed;
  /* Milliseconds over all plans, kernel by kernel: those of kernels that are made at the same time add up. */
  double lookup_ms, render_ms, compile_ms, tune_ms, load_ms;
  uint64_t log_dropped; /* lines that the rate limit kept back */
  uint64_t reserved[10];
} nsa_stats;
NSA_API nsa_status nsa_engine_stats(const nsa_engine *engine, nsa_stats *stats, nsa_error *error) NSA_NOEXCEPT;

/* JSON: device name, arch, driver, memory, SM count, device key, the key under which choices are, cache file, compiler
 * library, each with a reason when absent. Freed with nsa_free. */
NSA_API nsa_status nsa_engine_describe(nsa_engine *engine, char **json, nsa_error *error) NSA_NOEXCEPT;
NSA_API void nsa_free(void *text) NSA_NOEXCEPT;

/* DLPack 1.x. Fills a borrowed view of the DLTensor that `dl_tensor` points to (the member of a
 * DLManagedTensorVersioned, not that itself); the DLPack object stays the caller's. Null strides mean row-major,
 * byte_offset is added. */
NSA_API nsa_status nsa_tensor_from_dlpack(const void *dl_tensor, nsa_tensor *tensor, nsa_error *error) NSA_NOEXCEPT;
/* Fills a caller-owned DLTensor that borrows the tensor's data and its shape and strides arrays.
 * device: "cpu" or "cuda:N". */
NSA_API nsa_status nsa_tensor_to_dlpack(nsa_tensor *tensor, const char *device, void *dl_tensor,
                                        nsa_error *error) NSA_NOEXCEPT;

/* Block lists and token ranges, both int32 in host memory. Ranges are [.., kv_heads, slots, 2] where the list is
 * [.., kv_heads, slots], as many slots or others: half-open, counted in tokens of the sequence, [0, 0] where unused. Of
 * a list with one kv head in the dense layout, ranges may leave the heads out: [batch, time, slots, 2]. */
typedef struct nsa_range_options {
  size_t size;
  int32_t sel_block; /* tokens of a block */
  int32_t merge;     /* 1: blocks that follow each other become one range. From ranges, both kinds are taken */
  int64_t seqlen_k;  /* dense layout: keys of each sequence; 0: as many as queries */
  /* Packed layout: int32 [batch + 1] in host memory; one stands for both. */
  const nsa_tensor *cu_seqlens_q, *cu_seqlens_k;
  int64_t reserved[4];
} nsa_range_options;

/* The ranges of listed blocks, in their order and cut behind each query's own token; blocks behind it have none. The
 * list must be ascending, with -1 as a tail only. */
NSA_API nsa_status nsa_ranges_from_block_list(const nsa_tensor *block_list, const nsa_range_options *options,
                                              const nsa_tensor *ranges, nsa_error *error) NSA_NOEXCEPT;
/* The list of the blocks that ranges cover, which must be whole ones, or end with the query's own token. Ranges may
 * stand in any order and overlap. */
NSA_API nsa_status nsa_block_list_from_ranges(const nsa_tensor *ranges, const nsa_range_options *options,
                                              const nsa_tensor *block_list, nsa_error *error) NSA_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */

template <typename T> inline T nsa_init_sized() {
  T value{};
  value.size = sizeof(T);
  return value;
}
#endif
#endif
