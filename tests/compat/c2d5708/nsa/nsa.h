/* NSA Runtime: native sparse attention without Python and without PyTorch. The C ABI.
 *
 * The header nsa.h is the documentation of the C ABI; a function or field that is not in nsa.h is not API.
 *
 * Conventions
 *  - Every input struct begins with `size`, which the caller sets to sizeof(struct). Reserved fields of a struct must
 *    be zero. NSA_INIT(type) gives a zeroed struct with its size set.
 *  - Handles are opaque. Destroy functions accept NULL. No function keeps a pointer to its arguments
 *    (a plan does not keep the spec, a run does not keep the tensors).
 *  - A function returns nsa_status and fills the caller's `nsa_error` (may be NULL) on failure.
 *  - The memory of an output must not overlap an input, another output or the workspace: `out` cannot take the place of
 *    `q`. No function checks whether two tensors overlap.
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

/* Says why a function failed. The caller owns the struct. The texts in an nsa_error are NUL-terminated, and texts
 * that are too long are cut. */
typedef struct nsa_error {
  nsa_status code;
  char field[64];    /* the field at fault, e.g. "window"; "" when no field is */
  char value[128];   /* the value of the field */
  char rule[256];    /* the rule that the value broke */
  char message[512]; /* one sentence that is complete without field, value and rule; nsa_status_name tells the code */
  char hint[1024];   /* what to do; "" when there is no advice. The hint of NSA_CACHE_MISS is a command for a POSIX
                        shell, which makes what was missing. Paths that are too long for the hint are replaced by
                        variables of the shell, CACHE and TEMPLATES: the command fails until they are set */
} nsa_error;

typedef enum nsa_dtype { NSA_BF16 = 0, NSA_FP16 = 1, NSA_FP32 = 2, NSA_INT32 = 3 } nsa_dtype;

/* The operators, with the names that docs/specification.md gives them. */
typedef enum nsa_op {
  NSA_OP_DENSE = 0,    /* causal attention over all keys up to the query's own position */
  NSA_OP_WINDOW = 1,   /* attention over the last `window` keys, the query's own included */
  NSA_OP_COMPRESS = 2, /* makes one row of each block of keys, and of values */
  NSA_OP_CMP = 3,      /* attention over the compressed blocks that end at or before the query */
  NSA_OP_SELECT = 4,   /* chooses the blocks that the heads of a group attend for each query */
  NSA_OP_SEL = 5,      /* attention over the blocks of a list */
  NSA_OP_COMBINE = 6,  /* the gated sum of the branches */
  NSA_OP_NSA = 7,      /* the whole forward pass: compress, cmp, select, sel, window, combine */
  NSA_OP_DECODE = 8    /* puts new tokens into a cache, and computes nsa of their queries over it */
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
  nsa_dtype
      dtype; /* of q, k, v, gates, weights, compressed rows and outputs but the log-sum-exps: bf16, fp16 or fp32 */
  nsa_layout layout;
  int32_t query_heads; /* a multiple of kv_heads, at most 128 times it; not read by compress */
  int32_t kv_heads;
  int32_t qk_dim;
  int32_t v_dim;
  int32_t window; /* tokens, >= 1, the query's own included: window, nsa, decode. 512 */
  float scale;    /* 0: 1/sqrt(qk_dim); at most 65536. A score, scale times the product of a query and a key, must stay
                     below 2^30. A larger score makes the outputs of its row NaN */
  /* The operators `compress`, `cmp`, `select`, `nsa` and `decode` read these fields about compression. */
  int32_t cmp_block;  /* tokens of a compressed block, a multiple of cmp_stride. 32 */
  int32_t cmp_stride; /* tokens from the begin of one block to that of the next. 16 */
  nsa_cmp_kind cmp_kind;
  int32_t mlp_hidden; /* NSA_CMP_MLP only: width of the hidden layer */
  nsa_activation mlp_activation;
  /* The operators `select`, `sel`, `nsa` and `decode` read these fields about selection. */
  int32_t sel_block;    /* tokens of a selection block; a multiple of cmp_stride, except for sel. 64 */
  int32_t sel_count;    /* blocks that a group attends for a query, forced ones included; at most 64. 16 */
  int32_t init_blocks;  /* how many first blocks are always selected, >= 0. 1 */
  int32_t local_blocks; /* how many last blocks up to the query's own are always selected, >= 1. 2 */
  /* The operators `combine`, `nsa` and `decode` read these fields about gates. */
  nsa_gate gate;
  int32_t gate_per_group; /* 1: gates are [.., kv_heads, 3], 0: [.., query_heads, 3] */
  int32_t branches;       /* NSA_BRANCH_ bits; a branch that is off is not computed. NSA_BRANCHES_ALL */
  int32_t page_size;      /* decode only: tokens of a page of the cache, a multiple of sel_block; 0: no pages */
  int32_t reserved[7];
} nsa_spec;

/* Upper bounds for the sizes of a plan's calls. The grids and the workspace of a plan are large enough for calls of the
 * sizes in its nsa_maxima. */
typedef struct nsa_maxima {
  size_t size;
  int64_t max_batch;
  int64_t max_tokens_q; /* queries of all sequences together; 0: max_batch * max_seqlen_q */
  int64_t max_seqlen_q; /* queries of one sequence; at most max_seqlen_k, except for compress and combine */
  int64_t max_seqlen_k; /* keys of one sequence; decode: the most that its cache will ever hold */
  int64_t reserved[4];
} nsa_maxima;

typedef enum nsa_miss_policy {
  NSA_MISS_DEFAULT = 0,   /* compile the candidate that the cost model ranks first; measure nothing */
  NSA_MISS_FAIL = 1,      /* never compile: a miss is NSA_CACHE_MISS */
  NSA_MISS_TUNE = 2,      /* compile and measure candidates within the budget, keep the winner */
  NSA_MISS_BACKGROUND = 3 /* serve the best stored kernel, tune on a thread; the next plan gets the winner
                             (nsa_tuned_callback says when) */
} nsa_miss_policy;

typedef enum nsa_log_level {
  NSA_LOG_DEBUG = 0,
  NSA_LOG_INFO = 1,
  NSA_LOG_WARNING = 2,
  NSA_LOG_ERROR = 3,
  NSA_LOG_OFF = 4
} nsa_log_level;
/* A log callback is called from any thread with one line that has no newline. A log callback must not call back into
 * the engine. */
typedef void (*nsa_log_callback)(void *user, nsa_log_level level, const char *tag, const char *message);

typedef struct nsa_engine nsa_engine;

/* A function of the host that the engine calls when a new plan would have better kernels than the host's plan. Under
 * the policy `background` the engine calls the host's nsa_tuned_callback when it has tuned the kernels of a plan, or
 * has compiled outdated kernels again. After the callback, the next nsa_plan_create with the same spec and maxima
 * returns the better plan from memory. A plan that the host holds does not change.
 *  - What the callback receives: tuned_user, the engine that calls it, and the spec and the maxima that the plan was
 *    asked for, both valid during the call. The callback may plan with the engine even while another thread destroys
 *    the engine, because nsa_engine_destroy waits for the callback. If the host set max_tokens_q to 0, the callback
 *    receives the number of queries that the 0 stands for. Requests that differ only in numbers that choose no kernel
 *    (scale, or lengths within one power of two) share their kernels. The library calls the callback once for all
 *    requests that share kernels, with the spec and the maxima of the first request. To use the better kernels, the
 *    host calls nsa_plan_create again for all requests that share these kernels.
 *  - Which thread calls: the thread that tunes for this engine, with all signals blocked. Callbacks come one at a time,
 *    and the next tuning begins when the callback has returned.
 *  - What the callback may call: every function of this library, nsa_plan_create among them, except nsa_engine_destroy
 *    of this engine. A callback must not throw.
 *  - The end: nsa_engine_destroy and the end of the process wait for a callback that is running, so a thread that waits
 *    there must not hold a lock that the callback takes. No callback comes after nsa_engine_destroy.
 *  - When no callback comes: under another policy, for a plan that needs no tuning, for nsa_tune, and when tuning fails
 *    (nsa_stats.background_failed). A callback does come when tuning found nothing faster: the kernels stay the same,
 *    and the new plan says that they are tuned.
 * In the child of a fork the child's own engine calls the callback. */
typedef void (*nsa_tuned_callback)(void *user, nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima);

/* A field of nsa_engine_options that is zero (NULL, 0) takes its default. The default is the value of the environment
 * variable that the field's comment names, which is read once when the engine opens, or else the built-in value. A
 * program with more rights than its caller (setuid) reads no environment variable.
 *
 * When an engine opens, it checks the paths that its options and environment variables name. The error of a bad path
 * names the field or the variable, the path and the rule:
 *  - cache_packs, cache_keys, pin_path, compiler_path, nvrtc_path: files that exist and can be read. A library's name
 *    without '/' is not checked, because the loader finds the library.
 *  - template_dir: a folder that exists and can be read.
 *  - cache_path, NSA_CACHE_DIR: a database that exists, or a place where one can be made. The first kernel that is
 *    stored makes the database. The default place of the database is not checked: where no database can be made,
 *    kernels are kept in memory.
 *  - dump_dir: a folder that exists and can be written, or that can be made. */
typedef struct nsa_engine_options {
  size_t size;
  const char *device;          /* "cpu" or "cuda:N". NSA_DEVICE, else cuda:0 when usable, else cpu */
  const char *cache_path;      /* database file, ":memory:" for none. NSA_CACHE_DIR/kernels.db, else nsa/kernels.db in
                                  $XDG_CACHE_HOME or ~/.cache */
  int32_t miss_policy_set;     /* 1: `miss_policy` counts even where it is NSA_MISS_DEFAULT, which is zero */
  nsa_miss_policy miss_policy; /* NSA_MISS (default|fail|tune|background), else default */
  double tune_budget_seconds;  /* for each kernel. NSA_TUNE_BUDGET, else 30; no limit where the search is exhaustive */
  const char *compiler_path;   /* libnsa_compiler.so. NSA_COMPILER, else beside libnsa.so, or beside the file that
                                  libnsa.so is a link to */
  const char *nvrtc_path;      /* NSA_NVRTC, else searched */
  const char *template_dir;    /* templates from a folder instead of the embedded ones. Choices made with such a folder
                                  serve only while it has the same content. NSA_TEMPLATE_DIR */
  const char *force_variant;   /* only this template may serve dense, window and cmp attention ("attention",
                                  "row_attention"). NSA_FORCE_VARIANT */
  const char *dump_dir;        /* folder for rendered templates, sources and manifests. NSA_DUMP_DIR */
  int32_t cpu_threads;         /* worker threads of the CPU device. NSA_CPU_THREADS, else all cores */
  int32_t compile_threads;     /* NSA_COMPILE_THREADS, else all cores */
  nsa_log_callback log;        /* NULL: warnings and errors go to stderr */
  void *log_user;
  nsa_log_level log_level;  /* with a callback: the least level passed on. NSA_LOG for stderr */
  const char *cpu_features; /* "", "x86-64-v3" or "x86-64-v4": limits the CPU device's code. NSA_CPU_FEATURES */
  /* Paths of packs (read-only files of kernels), separated by ':'; "none": no pack at all. NSA_CACHE_PACKS */
  /* A kernel is looked up in the database first, and then in the packs, in the order of cache_packs. */
  /* Every *.nsapack in ../share/nsa/packs, seen from the folder of libnsa.so, follows the packs of cache_packs. */
  const char *cache_packs;
  const char *cache_keys;    /* files of public keys, separated by ':', whose signatures of packs count. A pack without
                                such a signature gives a warning. NSA_CACHE_KEYS */
  int32_t require_signature; /* 1: a pack without a signature by one of cache_keys is not used. NSA_REQUIRE_SIGNATURE */
  int64_t cache_max_bytes; /* limit of the database: storing a kernel removes the least recently used kernels that could
                              be tuned and were not. NSA_CACHE_MAX_BYTES, else no limit */
  const char *fallbacks;   /* what may serve a problem that has no kernel of its own: "all", "exact" for nothing, or a
                              comma list of nearest, model, architecture, compiled, cpu (docs/embedding.md). Where a
                              step that is left out would be needed, the plan is an error. NSA_FALLBACKS, else all */
  const char *pin_path;    /* a pack or database, never written, which is the only source of choices. Engines with the
                              same file choose the same kernels. Nothing is tuned, and miss_policy must be fail or
                              default. NSA_PIN; "none": no file, even where NSA_PIN names one */
  const char *record_path; /* a file to which the engine appends every plan that it makes or has no kernel for. `nsa
                              tune` tunes such a file (docs/tuning.md). The file's folder must exist. NSA_RECORD;
                              "none": no file, even where NSA_RECORD names one */
  int32_t log_limit;       /* warnings of one tag in a minute, -1 for no limit. NSA_LOG_LIMIT, else 20 */
  int32_t uniform_gate;    /* debugging: 1 gives each branch the same weight, whatever the gates. NSA_UNIFORM_GATE */
  const char *force_branch;  /* debugging: "cmp", "sel" or "win": the gate of this branch is 1, the others' are 0.
                                NSA_FORCE_BRANCH */
  int32_t tune_exhaustive;   /* 1: tuning compiles and measures every candidate. NSA_TUNE_EXHAUSTIVE */
  int32_t ignore_thresholds; /* 1: measured thresholds decide nothing (docs/tuning.md). NSA_IGNORE_THRESHOLDS */
  int32_t decode_splits; /* 1 to 16: at most how many programs share the keys of a query of decode in each branch; 0: as
                            measured, else by rule (docs/operators.md). NSA_DECODE_SPLITS */
  int32_t flags;         /* 0 */
  nsa_tuned_callback tuned; /* NULL: no callback */
  void *tuned_user;
  int64_t reserved[2];
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

/* The names of the tensors that each operator takes. In a shape, `..` is [batch, time] in the dense layout and [total]
 * in the packed layout. In the packed layout every operator but combine also takes CU_SEQLENS_Q and CU_SEQLENS_K, int32
 * [batch + 1]; if only one of them is bound, it holds for queries and keys. "A else B" means that the operator reads B
 * if A is not bound, so that all branches may read the same K and V. Brackets mark tensors that a call may leave out.
 *
 *   dense, window  Q, K_WIN else K, V_WIN else V            -> OUT, [LSE], [READS]
 *   compress       K_CMP else K, V_CMP else V, weights      -> K_COMP, V_COMP
 *   cmp            Q_CMP else Q, K_COMP, V_COMP             -> OUT, [LSE], [READS]
 *   select         Q_CMP else Q, K_COMP, [LSE of cmp]       -> BLOCK_LIST
 *   sel            Q, K_SEL else K, V_SEL else V, BLOCK_LIST -> OUT, [LSE], [READS]
 *   combine        O_CMP, O_SEL, O_WIN (of the branches that are on), GATES -> OUT
 *   nsa            Q, Q_CMP else Q, K_* else K, V_* else V, weights, GATES
 *                  -> OUT, [O_*], [LSE_*], [BLOCK_LIST], [K_COMP], [V_COMP], [READS]
 *   decode         the inputs of nsa, for the new tokens alone; CACHE_SEQLENS, [BLOCK_TABLE], K_SEL_CACHE else K_CACHE,
 *                  K_WIN_CACHE else K_CACHE, the same for V_*, K_COMP_CACHE, V_COMP_CACHE, K_RAW, V_RAW. The call reads
 *                  and writes all tensors of the cache except BLOCK_TABLE, which it only reads
 *                  -> OUT, [O_*], [LSE_*], [BLOCK_LIST], [READS]
 *
 * Shapes
 *   Q                    [.., query_heads, qk_dim]
 *   K*, V*               [.., kv_heads, qk_dim] and [.., kv_heads, v_dim]
 *   OUT, O_*             [.., query_heads, v_dim]
 *   LSE*                 fp32 [.., query_heads]
 *   BLOCK_LIST           int32 [.., kv_heads, sel_count]: ascending numbers of the sequence's blocks; -1 fills the end
 *   GATES                [.., heads, 3] in the order cmp, sel, win
 *   READS                int32 [.., kv_heads]: how many tokens and compressed blocks the query's group attended
 *   K_COMP, V_COMP       [.., kv_heads, dim] with a row for each compressed block in the place of time
 * A sequence of T tokens has N_c(T) = T < cmp_block ? 0 : (T - cmp_block) / cmp_stride + 1 compressed blocks. In the
 * packed layout the blocks of the sequences follow each other without gaps, and the tensors may have more rows than
 * blocks. In the dense layout, cmp and select assume that a sequence has as many tokens as queries. If a sequence has
 * more tokens than queries, cmp and select need the packed layout.
 *
 * The cache of decode. Each call of decode brings T_q = T >= 1 new tokens of each sequence: a prompt, a chunk of a
 * prompt or a single token. In the packed layout CU_SEQLENS_Q gives the number of new tokens for each sequence, which
 * may be 0. A call of decode appends the new tokens to the cache, compresses the blocks that become complete, adds the
 * number of new tokens to CACHE_SEQLENS, and then computes for the new queries what nsa computes. The lengths of the
 * cache are in device memory alone, so a CUDA graph that captured one call computes every later step of decoding.
 *   CACHE_SEQLENS              int32 [batch]: tokens in the cache, 0 at first
 *   K_*CACHE, V_*CACHE         [batch, room, kv_heads, dim], with a page_size [pages, page_size, kv_heads, dim]
 *   K_COMP_CACHE, V_COMP_CACHE [batch, at least N_c(room), kv_heads, dim],
 *                              with a page_size [pages, page_size / cmp_stride, kv_heads, dim]
 *   BLOCK_TABLE                int32 [batch, pages of a sequence]: entry i is the page of the sequence's tokens from
 *                              i * page_size on, and of the compressed blocks that begin there
 *   K_RAW, V_RAW               [batch, cmp_block, kv_heads, dim]: the last tokens that are to be compressed; token t is
 *                              in row t mod cmp_block
 * In these shapes, `room` is the number of tokens that the cache can hold for each sequence. Entries of BLOCK_TABLE for
 * pages after the last token of a sequence are not read. Memory of the cache that was never written is never read. If
 * sel and win read the same K_CACHE or V_CACHE, their new keys or values must be the same tensor. If the cache is too
 * small for the new tokens of a sequence, the sequence does not change, and an error is returned: by nsa_run on the
 * CPU, by nsa_plan_status on a GPU.
 *
 * Weights have the dtype of the spec, and all heads use the same weights. Weights of keys (_K) have D = qk_dim, weights
 * of values (_V) have D = v_dim:
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

typedef struct nsa_plan nsa_plan;

/* Gives a zeroed struct whose field `size` is set: nsa_spec spec = NSA_INIT(nsa_spec); */
#ifdef __cplusplus
#define NSA_INIT(type) nsa_init_sized<type>()
#else
#define NSA_INIT(type) ((type){.size = sizeof(type)})
#endif

/* nsa_version gives the version, such as "0.2.0"; nsa_source_id gives the revision that the library was built from. The
 * returned texts are constants of the library. */
NSA_API uint32_t nsa_abi_version(void) NSA_NOEXCEPT;
NSA_API const char *nsa_version(void) NSA_NOEXCEPT;
NSA_API const char *nsa_source_id(void) NSA_NOEXCEPT;
NSA_API const char *nsa_status_name(nsa_status status) NSA_NOEXCEPT;

/* Sets the defaults that the comments of nsa_spec name, and the dtype bf16. All other fields become zero. */
NSA_API void nsa_spec_init(nsa_spec *spec) NSA_NOEXCEPT;

/* Opens the device. nsa_engine_create opens neither the compiler library nor NVRTC, and the first nsa_plan_create opens
 * the database of kernels. `options` may be NULL. */
NSA_API nsa_status nsa_engine_create(const nsa_engine_options *options, nsa_engine **engine,
                                     nsa_error *error) NSA_NOEXCEPT;
NSA_API void nsa_engine_destroy(nsa_engine *engine) NSA_NOEXCEPT;

/* Finds or makes the kernels of a spec and loads them. nsa_plan_create looks for kernels in memory, then in the
 * database and the packs, and then follows the miss policy. When another process is making the same kernel,
 * nsa_plan_create waits for that kernel and takes it. nsa_plan_create waits for another process at most a minute; under
 * the policy `tune` the limit is a minute and twice the tuning budget. If `stream` captures a graph and the plan is not
 * in memory, nsa_plan_create returns the error NSA_CAPTURING, which names the problem key. */
NSA_API nsa_status nsa_plan_create(nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima, void *stream,
                                   nsa_plan **plan, nsa_error *error) NSA_NOEXCEPT;
NSA_API void nsa_plan_destroy(nsa_plan *plan) NSA_NOEXCEPT;

/* Options of one plan. */
typedef struct nsa_plan_options {
  size_t size;
  int32_t compare; /* 1: each run launches every kernel that had a choice a second time, and also the kernel that
                      defines its operator (the tile program, compiled with its first configuration), and compares their
                      results. A run that compares waits for the device, needs more workspace (which
                      nsa_plan_workspace_size counts) and must not be captured */
  int32_t flags;   /* 0 */
  int64_t reserved[6];
} nsa_plan_options;
/* As nsa_plan_create, with options. NULL means no options. */
NSA_API nsa_status nsa_plan_create_with(nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima,
                                        const nsa_plan_options *options, void *stream, nsa_plan **plan,
                                        nsa_error *error) NSA_NOEXCEPT;
/* Gives the report of the last run of a plan that was made with the option `compare`, as a JSON text, which the caller
 * frees with nsa_free. Each of the report's `parts` has `kernel` and `definition`; max_abs, mean_abs and relative_rms
 * over the elements that are finite in both results; and unequal_nan and unequal_inf over the other elements. For a
 * part that selects blocks, the report says how many block lists differ. Parts whose results are not compared (kernels
 * with only one candidate, compression into a cache) have `compared: false`. */
NSA_API nsa_status nsa_plan_compare_report(const nsa_plan *plan, char **json, nsa_error *error) NSA_NOEXCEPT;

/* Sets *bytes to the size of the workspace that nsa_run needs, in the same memory as the tensors. If the size is 0,
 * pass NULL as the workspace. The workspace must be aligned to 256 bytes, and each of several runs that may overlap
 * needs its own workspace. On the CPU the calling thread uses the workspace as its scratch memory. */
NSA_API nsa_status nsa_plan_workspace_size(const nsa_plan *plan, size_t *bytes, nsa_error *error) NSA_NOEXCEPT;

/* Launches the kernels of the operator on `stream`. nsa_run checks the tensors on the host; a kernel checks the
 * sequence lengths in device memory. For a sequence whose length breaks a rule, the kernels write nothing and set the
 * plan's status word. */
NSA_API nsa_status nsa_run(const nsa_plan *plan, const nsa_binding *bindings, size_t binding_count, void *workspace,
                           size_t workspace_bytes, void *stream, nsa_error *error) NSA_NOEXCEPT;

/* How long one part of a run takes. */
typedef struct nsa_part_time {
  char name[24];       /* sequences, append, compress, cmp, scores, rank, select, ascend, sel, win, combine; of other
                          operators their own name */
  int32_t launches;    /* nsa goes through long sequences in chunks */
  double milliseconds; /* sum over the launches of the part, each from the end of the launch before to its own end; on a
                          GPU by events on `stream` */
} nsa_part_time;

/* nsa_run_timed is nsa_run, but waits for the result, and returns NSA_CAPTURING while `stream` captures. Fills up to
 * `capacity` entries of `times`, one for each part, in the order in which the parts were first launched. Sets *count to
 * the number of parts that the run has. */
NSA_API nsa_status nsa_run_timed(const nsa_plan *plan, const nsa_binding *bindings, size_t binding_count,
                                 void *workspace, size_t workspace_bytes, void *stream, nsa_part_time *times,
                                 size_t capacity, size_t *count, nsa_error *error) NSA_NOEXCEPT;

/* Waits for `stream`, then reads and clears the plan's status word. Returns NSA_OK, or NSA_DEVICE_ERROR with the
 * violated rule in `error`, or NSA_CAPTURING while `stream` captures. On the CPU nsa_run itself returns the error of a
 * violated rule. All runs of a plan share the plan's status word, on whichever stream: the word keeps the first report
 * since it was cleared. */
NSA_API nsa_status nsa_plan_status(nsa_plan *plan, void *stream, nsa_error *error) NSA_NOEXCEPT;

/* A JSON text that says what the plan runs: `operator`, `problem`, `device`, `source` (memory, database, pack,
 * compiled), `tuned`, `fallbacks` (kernels that were tried first, and why they did not serve), `milliseconds` of
 * lookup, render, compile, tune and load, and `launches` in their order, each with operator, template, config, content,
 * target and grid. The text of nsa_plan_describe is valid as long as the plan. */
NSA_API const char *nsa_plan_describe(const nsa_plan *plan) NSA_NOEXCEPT;

/* Says what would run for a spec, without compiling or storing anything. The JSON of nsa_explain is freed with
 * nsa_free. For an operator with several tuned kernels the JSON texts of nsa_explain and nsa_tune have the array
 * `kernels`, in the order of the launches. The field `fails` of a kernel is true where a plan would fail because the
 * kernel is missing. nsa_explain lists a kernel that is never tuned only if the kernel's field `fails` is true. */
NSA_API nsa_status nsa_explain(nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima, char **json,
                               nsa_error *error) NSA_NOEXCEPT;

/* Tunes one spec now, even where a result is stored, and stores the new result. nsa_tune is an error under the policy
 * `fail`, which opens no compiler, and where a table is pinned. The JSON report of nsa_tune is freed with nsa_free. The
 * report's field `store_trouble` says why the winner was not stored; it is "" when the winner was stored. If the winner
 * was not stored, this engine uses it, but later processes do not. The report's field `tuned` is false when the budget
 * ended before anything was measured; a winner that was stored before then stays. When another thread or process is
 * tuning the same kernel, nsa_tune waits and takes the other's result (`tuned_elsewhere`). */
NSA_API nsa_status nsa_tune(nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima, char **json,
                            nsa_error *error) NSA_NOEXCEPT;

/* Tunes one of the spec's kernels, named by its problem key, within `budget_seconds` (0: the engine's budget).
 * nsa_tune_kernel is for programs that tune many specs which share kernels. A kernel that has only one candidate is
 * found or made without tuning, and its report is {"kernels": []}. Plans in memory keep the kernels that they have. */
NSA_API nsa_status nsa_tune_kernel(nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima,
                                   const char *problem, double budget_seconds, char **json,
                                   nsa_error *error) NSA_NOEXCEPT;

/* Counters since the engine opened. A host that was built with an earlier nsa.h gets the fields of nsa_stats that it
 * knows. */
typedef struct nsa_stats {
  size_t size;
  uint64_t plans_from_memory, plans_from_database, plans_compiled, plans_failed;
  uint64_t kernels_compiled, kernels_measured, kernels_rejected, kernels_loaded;
  uint64_t cache_damaged_rows, cache_failed_writes;
  uint64_t runs;
  uint64_t cache_pack_hits, cache_refused_packs; /* kernels that packs served; packs that were refused */
  /* For each step of the fallback ladder, how many kernels came from this step (docs/embedding.md). */
  /* fallback_cpu is 1 if the engine uses the CPU because no GPU could be used. */
  uint64_t fallback_nearest, fallback_model, fallback_architecture, fallback_compiled, fallback_cpu;
  /* How many problems wait for tuning in the background or are being tuned, were tuned, and could not be tuned. */
  uint64_t background_pending, background_done, background_failed;
  /* Milliseconds, summed over the kernels of all plans, even if several kernels were made at the same time. */
  double lookup_ms, render_ms, compile_ms, tune_ms, load_ms;
  uint64_t log_dropped; /* log lines that the rate limit held back */
  uint64_t reserved[10];
} nsa_stats;
NSA_API nsa_status nsa_engine_stats(const nsa_engine *engine, nsa_stats *stats, nsa_error *error) NSA_NOEXCEPT;

/* Returns a JSON text, which the caller frees with nsa_free. The text has the device's name, architecture, driver,
 * memory, number of multiprocessors, device key, the key under which choices are stored, cache file and compiler
 * library. If the device or a library cannot be used, the JSON text of nsa_engine_describe says why. */
NSA_API nsa_status nsa_engine_describe(nsa_engine *engine, char **json, nsa_error *error) NSA_NOEXCEPT;
NSA_API void nsa_free(void *text) NSA_NOEXCEPT;

/* DLPack 1.x. Makes `tensor` a view of the DLTensor that `dl_tensor` points to, which is a member of a
 * DLManagedTensorVersioned and not that object itself. The caller keeps the DLPack object and frees it. Null strides of
 * the DLTensor mean row-major; its byte_offset is added to its data pointer. */
NSA_API nsa_status nsa_tensor_from_dlpack(const void *dl_tensor, nsa_tensor *tensor, nsa_error *error) NSA_NOEXCEPT;
/* Fills a caller-owned DLTensor that borrows the tensor's data and its shape and strides arrays.
 * device: "cpu" or "cuda:N". */
NSA_API nsa_status nsa_tensor_to_dlpack(nsa_tensor *tensor, const char *device, void *dl_tensor,
                                        nsa_error *error) NSA_NOEXCEPT;

/* Options of the two functions that convert block lists to token ranges and back. Block lists and token ranges are
 * int32 in host memory. A block list is [.., kv_heads, slots], and its token ranges are [.., kv_heads, slots, 2], where
 * the number of slots may differ. A token range is half-open and counts tokens of the sequence; an unused range is [0,
 * 0]. In the dense layout the token ranges of a block list with one kv head may be [batch, time, slots, 2]. */
typedef struct nsa_range_options {
  size_t size;
  int32_t sel_block; /* tokens of a block */
  int32_t merge;     /* 1: adjacent blocks become one range. The way back accepts merged and unmerged ranges */
  int64_t seqlen_k;  /* dense layout: keys of each sequence; 0: as many as queries */
  /* Packed layout: int32 [batch + 1] in host memory. If only one of cu_seqlens_q and cu_seqlens_k is set, this tensor
   * holds for queries and keys. */
  const nsa_tensor *cu_seqlens_q, *cu_seqlens_k;
  int64_t reserved[4];
} nsa_range_options;

/* Writes the token ranges of the blocks in a block list, in the order of the list. A token range ends at the latest
 * with the query's own token, and a block that begins after the query's own token has no range. The block list must be
 * ascending, and -1 may only follow the last block. */
NSA_API nsa_status nsa_ranges_from_block_list(const nsa_tensor *block_list, const nsa_range_options *options,
                                              const nsa_tensor *ranges, nsa_error *error) NSA_NOEXCEPT;
/* Writes the list of the blocks that token ranges cover. A token range must cover whole blocks, or end with the query's
 * own token. Token ranges may be in any order and may overlap. */
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
