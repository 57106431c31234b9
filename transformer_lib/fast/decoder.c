/* One step of a trained decoder on a CPU: the one that the chapters build, as a single call.

   Pre-norm, LayerNorm, ReLU, float32. Every matrix is row-major; a map's weights are laid out for
   `product`. In the book's symbols, width is D, heads is H and inner is d_ff. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A block of columns is as wide as the processor's registers allow: ROWS x (BLOCK / LANES) sums
   stay in them while a row of weights goes by. */
#if defined(__AVX512F__)
enum { LANES = 16, BLOCK = 64, ROWS = 6 };
#elif defined(__AVX__)
enum { LANES = 8, BLOCK = 16, ROWS = 6 };
#else
enum { LANES = 4, BLOCK = 16, ROWS = 6 };
#endif
enum { CHUNK = 16 * ROWS }; /* hypotheses at a time: few enough to stay in the cache */
typedef float vector __attribute__((vector_size(4 * LANES), aligned(4)));

int block(void) { return BLOCK; }

typedef struct {
    const float *weight, *bias; /* (out / BLOCK, in, BLOCK), (out): padded with zeros */
    long in, out;
} Map;

typedef struct {
    Map qkv, own_out, cross_q, cross_out, expand, contract;
    const float *gain[3], *shift[3]; /* of the norms before the three sublayers, (D) each */
} Layer;

typedef struct {
    const Layer *layers;
    Map output;
    const float *gain, *shift; /* of the norm after the last layer */
    long n_layers, width, heads, inner;
    float eps;
} Decoder;

/* n rows of x times one block of columns: y[r][c] = bias[c] + sum_k x[r][k] w[k][c]. */
static inline __attribute__((always_inline)) void tile(
    const float *x, long x_stride, int n, const float *w, long in, const float *bias, vector *y) {
    enum { PARTS = BLOCK / LANES };
    vector sums[ROWS][PARTS];
    for (int r = 0; r < n; r++)
        for (int c = 0; c < PARTS; c++) sums[r][c] = ((const vector *)bias)[c];
    for (long k = 0; k < in; k++, w += BLOCK) {
        vector row[PARTS];
        for (int c = 0; c < PARTS; c++) row[c] = ((const vector *)w)[c];
        for (int r = 0; r < n; r++) {
            float number = x[r * x_stride + k];
            for (int c = 0; c < PARTS; c++) sums[r][c] += number * row[c];
        }
    }
    for (int r = 0; r < n; r++)
        for (int c = 0; c < PARTS; c++) y[r * PARTS + c] = sums[r][c];
}

/* The same for up to ROWS rows, compiled separately for each number of rows. */
static void tile_of(const float *x, long x_stride, long n, const float *w, long in,
                    const float *bias, float *y) {
    vector *to = (vector *)y;
    switch (n) {
        case 1: tile(x, x_stride, 1, w, in, bias, to); break;
        case 2: tile(x, x_stride, 2, w, in, bias, to); break;
        case 3: tile(x, x_stride, 3, w, in, bias, to); break;
        case 4: tile(x, x_stride, 4, w, in, bias, to); break;
        case 5: tile(x, x_stride, 5, w, in, bias, to); break;
        default: tile(x, x_stride, 6, w, in, bias, to);
    }
}

/* From x (n_rows, in) to y (n_rows, out): y = map(x), y += map(x), or y = relu(map(x)). */
enum { PLAIN, ADDED, POSITIVE };
static void product(const Map *map, const float *x, long n_rows, float *y, int kind) {
    float sums[ROWS * BLOCK] __attribute__((aligned(64)));
    for (long column = 0; column < map->out; column += BLOCK) {
        const float *w = map->weight + column * map->in;
        long wide = map->out - column < BLOCK ? map->out - column : BLOCK;
        for (long row = 0; row < n_rows; row += ROWS) {
            long n = n_rows - row < ROWS ? n_rows - row : ROWS;
            tile_of(x + row * map->in, map->in, n, w, map->in, map->bias + column, sums);
            for (long r = 0; r < n; r++) {
                float *to = y + (row + r) * map->out + column, *from = sums + r * BLOCK;
                if (kind == ADDED)
                    for (long c = 0; c < wide; c++) to[c] += from[c];
                else if (kind == POSITIVE)
                    for (long c = 0; c < wide; c++) to[c] = from[c] > 0 ? from[c] : 0;
                else
                    for (long c = 0; c < wide; c++) to[c] = from[c];
            }
        }
    }
}

static void layer_norm(const float *x, long n_rows, long width, const float *gain,
                       const float *shift, float eps, float *y) {
    for (; n_rows--; x += width, y += width) {
        float mean = 0, variance = 0;
        for (long i = 0; i < width; i++) mean += x[i];
        mean /= width;
        for (long i = 0; i < width; i++) variance += (x[i] - mean) * (x[i] - mean);
        float scale = 1 / sqrtf(variance / width + eps);
        for (long i = 0; i < width; i++) y[i] = (x[i] - mean) * scale * gain[i] + shift[i];
    }
}

/* exp(x) for x <= 0, with a relative error of about 1e-7: 2^whole times a polynomial of the rest.
   It has no branches, so that the compiler can compute several at once. */
static inline float exponential(float x) {
    x = x < -87 ? -87 : x;
    float whole = floorf(x * 1.44269504f + 0.5f);
    float rest = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * rest + 1.3981999507e-3f;
    p = p * rest + 8.3334519073e-3f;
    p = p * rest + 4.1665795894e-2f;
    p = p * rest + 1.6666665459e-1f;
    p = p * rest + 5.0000001201e-1f;
    p = p * rest * rest + rest + 1;
    union { int bits; float value; } power = {((int)whole + 127) << 23};
    return p * power.value;
}

/* One query against `length` places: y (D) = sum over places of softmax(q k / sqrt(K)) v, by head.
   places[t] holds a key (D) followed by its value (D); if seen[t] is 0, place t is ignored.
   scores: room for (H, length). size: K, a constant where that lets the compiler do more. */
static inline __attribute__((always_inline)) void attend_of(
    const float *q, const float *const *places, const unsigned char *seen, long length, long heads,
    const long size, float *scores, float *y) {
    float root = 1 / sqrtf(size);
    for (long t = 0; t < length; t++)
        for (long h = 0; h < heads; h++) {
            const float *k = places[t] + h * size, *of = q + h * size;
            float score = 0;
            for (long i = 0; i < size; i++) score += of[i] * k[i];
            scores[h * length + t] = seen && !seen[t] ? -1e30f : score * root;
        }
    for (long h = 0; h < heads; h++) {
        float *these = scores + h * length, largest = -1e30f;
        for (long t = 0; t < length; t++) largest = these[t] > largest ? these[t] : largest;
        if (largest > -1e30f)
            for (long t = 0; t < length; t++) these[t] -= largest;
    }
    for (long i = 0; i < heads * length; i++) scores[i] = exponential(scores[i]);
    for (long h = 0; h < heads; h++) {
        float *these = scores + h * length, sum = 0;
        for (long t = 0; t < length; t++) sum += these[t];
        float scale = sum > 1e-30f ? 1 / sum : 0; /* nothing to attend to: zeros */
        for (long t = 0; t < length; t++) these[t] *= scale;
    }
    memset(y, 0, heads * size * sizeof(float));
    for (long t = 0; t < length; t++)
        for (long h = 0; h < heads; h++) {
            const float *v = places[t] + (heads + h) * size;
            float share = scores[h * length + t];
            for (long i = 0; i < size; i++) y[h * size + i] += share * v[i];
        }
}

static void attend(const float *q, const float *const *places, const unsigned char *seen,
                   long length, long width, long heads, float *scores, float *y) {
    long size = width / heads;
    switch (size) {
        case 32: attend_of(q, places, seen, length, heads, 32, scores, y); break;
        case 64: attend_of(q, places, seen, length, heads, 64, scores, y); break;
        default: attend_of(q, places, seen, length, heads, size, scores, y);
    }
}

/* One step for n_rows hypotheses, n per sentence. Returns 0, or 1 if memory runs out.

   x: (n_rows, D), the newest tokens, embedded; at the end, the input of the output layer.
   memory: (B, S, L, 2 D), keys and values of the sources; read: (B, S) bytes, 0 for padding.
   own: (B, L, room, n, 2 D), those of all tokens written so far; this step adds its own at
   `length`. places: (n_rows / n), each sentence's row in B. path: (n_rows, path_stride), the
   place in the beam of each token of a hypothesis, the newest included. */
int step(const Decoder *d, float *x, long n_rows, long n, const float *memory,
         const unsigned char *read, long n_sources, float *own, long room, long length,
         const long *places, const int *path, long path_stride) {
    long width = d->width, longest = n_sources > length + 1 ? n_sources : length + 1;
    float *y = malloc(sizeof(float) * (CHUNK * (4 * width + d->inner) + d->heads * longest));
    const float **at = malloc(sizeof(float *) * longest);
    if (!y || !at) return free(y), free(at), 1;
    float *qkv = y + CHUNK * width, *inner = qkv + 3 * CHUNK * width;
    float *scores = inner + CHUNK * d->inner;
    for (long first = 0; first < n_rows; first += CHUNK, x += CHUNK * width) {
        long rows = n_rows - first < CHUNK ? n_rows - first : CHUNK;
        for (long l = 0; l < d->n_layers; l++) {
            const Layer *layer = d->layers + l;
            layer_norm(x, rows, width, layer->gain[0], layer->shift[0], d->eps, y);
            product(&layer->qkv, y, rows, qkv, PLAIN);
            for (long r = 0; r < rows; r++) {
                long row = first + r, place = places[row / n] * d->n_layers + l;
                float *mine = own + place * room * n * 2 * width;
                memcpy(mine + (length * n + row % n) * 2 * width, qkv + (r * 3 + 1) * width,
                       2 * width * sizeof(float));
                for (long t = 0; t <= length; t++)
                    at[t] = mine + (t * n + path[row * path_stride + t]) * 2 * width;
                attend(qkv + r * 3 * width, at, NULL, length + 1, width, d->heads, scores,
                       y + r * width);
            }
            product(&layer->own_out, y, rows, x, ADDED);

            layer_norm(x, rows, width, layer->gain[1], layer->shift[1], d->eps, y);
            product(&layer->cross_q, y, rows, qkv, PLAIN);
            for (long r = 0; r < rows; r++) {
                long place = places[(first + r) / n];
                const float *theirs = memory + (place * n_sources * d->n_layers + l) * 2 * width;
                for (long s = 0; s < n_sources; s++)
                    at[s] = theirs + s * d->n_layers * 2 * width;
                attend(qkv + r * width, at, read + place * n_sources, n_sources, width, d->heads,
                       scores, y + r * width);
            }
            product(&layer->cross_out, y, rows, x, ADDED);

            layer_norm(x, rows, width, layer->gain[2], layer->shift[2], d->eps, y);
            product(&layer->expand, y, rows, inner, POSITIVE);
            product(&layer->contract, inner, rows, x, ADDED);
        }
        layer_norm(x, rows, width, d->gain, d->shift, d->eps, y);
        memcpy(x, y, rows * width * sizeof(float));
    }
    free(y), free(at);
    return 0;
}

/* For each row, the k tokens with the largest logits, largest first, never `padding`.

   hidden: (n_rows, D). best: (n_rows, k) logits, or log-probabilities if normalise; ids: (n_rows,
   k). The logits are searched block by block as they are computed, and never all stored. */
int top(const Decoder *d, const float *hidden, long n_rows, long k, long padding, long normalise,
        float *best, long *ids) {
    const Map *map = &d->output;
    float logits[ROWS * BLOCK] __attribute__((aligned(64)));
    float *largest = malloc(sizeof(float) * n_rows * 2), *sum = largest + n_rows;
    if (!largest) return 1;
    for (long i = 0; i < n_rows * k; i++) best[i] = -INFINITY, ids[i] = 0;
    for (long row = 0; row < n_rows; row++) largest[row] = -1e30f, sum[row] = 0;
    for (long column = 0; column < map->out; column += BLOCK) {
        const float *w = map->weight + column * map->in;
        long wide = map->out - column < BLOCK ? map->out - column : BLOCK;
        for (long first = 0; first < n_rows; first += ROWS) {
            long n = n_rows - first < ROWS ? n_rows - first : ROWS;
            tile_of(hidden + first * map->in, map->in, n, w, map->in, map->bias + column, logits);
            for (long row = first; row < first + n; row++) {
                float *these = logits + (row - first) * BLOCK, most = -1e30f;
                for (long c = wide; c < BLOCK; c++) these[c] = -1e30f;
                if (padding >= column && padding < column + BLOCK)
                    these[padding - column] = -1e30f;
                for (long c = 0; c < BLOCK; c++) most = these[c] > most ? these[c] : most;
                if (normalise) {
                    float more = 0;
                    if (most > largest[row]) {
                        sum[row] *= exponential(largest[row] - most);
                        largest[row] = most;
                    }
                    for (long c = 0; c < BLOCK; c++) more += exponential(these[c] - largest[row]);
                    sum[row] += more;
                }
                float *kept = best + row * k;
                if (most <= kept[k - 1]) continue;
                for (long c = 0; c < wide; c++) {
                    if (these[c] <= kept[k - 1] || these[c] <= -1e30f) continue;
                    long i = k - 1;
                    for (; i > 0 && kept[i - 1] < these[c]; i--)
                        kept[i] = kept[i - 1], ids[row * k + i] = ids[row * k + i - 1];
                    kept[i] = these[c], ids[row * k + i] = column + c;
                }
            }
        }
    }
    if (normalise)
        for (long row = 0; row < n_rows; row++)
            for (long i = 0; i < k; i++)
                best[row * k + i] -= largest[row] + logf(sum[row]);
    free(largest);
    return 0;
}
